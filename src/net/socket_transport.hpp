#pragma once

#include "net/process.hpp"
#include "net/transport.hpp"

namespace millrace::detail {

/// A connected, non-blocking socket, which it owns.
class SocketTransport final : public Transport {
 public:
  SocketTransport(int descriptor, const Clock& clock) noexcept;
  ~SocketTransport() override { close(); }

  IoResult receive(std::span<char> into) noexcept override;
  IoResult send(std::string_view bytes) noexcept override;
  Waited wait(Interest interest, const Wakeup* wakeup, TimePoint deadline) noexcept override;
  bool is_quiet() noexcept override;
  void finish_sending() noexcept override;

  /// In the process that opened it, the peer is told even if a child inherited the descriptor by
  /// fork(). In a child, the parent's connection is left alone.
  void close() noexcept override;

 private:
  int descriptor_;
  HomeProcess made_in_;
  const Clock* clock_;
};

}  // namespace millrace::detail
