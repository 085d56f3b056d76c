#pragma once

#include "net/connection.hpp"
#include "worker/ledger.hpp"

#include <cstddef>
#include <optional>

namespace millrace::detail {

struct Shared;

/// Acknowledgements of one round trip.
inline constexpr std::size_t kMostAcks = 1'000;

/// Acknowledgements on their way: taken from the ledger when made, written as one XACK, and settled
/// by its reply. What was not answered when this ends waits in the ledger again, since repeating an
/// XACK harms nothing.
class Acknowledging {
 public:
  Acknowledging(const Shared& shared, std::size_t limit);

  /// Of ids that were taken already.
  Acknowledging(const Shared& shared, AckBatch acks);

  Acknowledging(const Acknowledging&) = delete;
  Acknowledging& operator=(const Acknowledging&) = delete;
  ~Acknowledging();

  std::size_t commands() const noexcept { return acks_.ids.empty() ? 0 : 1; }
  void write(RequestBuffer& request) const;
  void settle(ReplyView reply);

  /// How a pipeline is sent: on a Connection, or on one that a Pool lends.
  using Send = FunctionRef<PipelineResult(const CallSpec&, WriteRequest, TakeReply)>;

  /// A round trip of their own, if there are any. Throws a refusal as well as a lost connection.
  void send(Send send);

  /// Tells the observer, once, if they were acknowledged; at the end of this object at the latest.
  void tell() noexcept;

  /// How many were still pending when the reply came.
  std::size_t acknowledged() const noexcept { return acknowledged_; }

  /// What the server said instead of acknowledging.
  const std::optional<Error>& error() const noexcept { return error_; }

 private:
  const Shared& shared_;
  AckBatch acks_;
  std::optional<Error> error_{};
  std::size_t acknowledged_ = 0;
  bool settled_ = false;
  bool told_ = false;
};

}  // namespace millrace::detail
