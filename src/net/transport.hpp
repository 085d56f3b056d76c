#pragma once

#include "net/poll.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace millrace::detail {

/// What became of one attempt to read or write.
struct IoResult {
  enum class Status : std::uint8_t {
    kDone,       ///< `bytes` were moved, at least one.
    kWantRead,   ///< Nothing moved; try again when the stream is readable.
    kWantWrite,  ///< Nothing moved; try again when the stream is writable.
    kEnd,        ///< The peer has closed its side.
    kFailed,     ///< Broken; `error_number` is the errno.
  };
  Status status = Status::kFailed;
  std::size_t bytes = 0;
  int error_number = 0;
};

/// A stream of bytes to one peer, already connected. No call blocks but wait(), and a dead peer
/// never raises SIGPIPE.
///
/// Waiting belongs to it, so that a stream with a buffer of its own (TLS) can say that it is ready
/// although its socket is not, and so that tests can play both the peer and the time.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual IoResult receive(std::span<char> into) noexcept = 0;
  virtual IoResult send(std::string_view bytes) noexcept = 0;
  virtual Waited wait(Interest interest, const Wakeup* wakeup, TimePoint deadline) noexcept = 0;

  /// True while there is nothing to read and the peer has not closed: what an idle connection has
  /// to look like. Does not block.
  virtual bool is_quiet() noexcept = 0;

  /// Tells the peer that nothing more will come. What it sends can still be received, until it
  /// closes too.
  virtual void finish_sending() noexcept = 0;

  /// Ends the stream for both sides. Idempotent.
  virtual void close() noexcept = 0;
};

}  // namespace millrace::detail
