#pragma once

#include <millrace/stream_id.hpp>

#include "core/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace millrace::detail {

/// Names an entry that is held. Ids belong to one making of the stream: when it is made new, the
/// tickets of the old one mean nothing any more.
struct Ticket {
  StreamId id{};
  std::uint64_t making = 0;
};

/// Acknowledgements on their way to the server.
struct AckBatch {
  std::vector<StreamId> ids{};
  std::uint64_t making = 0;
};

/// What this worker holds: every entry from its delivery until the reply to its acknowledgement.
/// No I/O, one mutex; safe from any thread.
///
/// Invariant: an id is in exactly one state. kQueued -> kRunning -> kDone -> kAcking -> gone, with
/// kAcking -> kDone when an acknowledgement failed, and any state -> gone by give_up() or
/// start_over(). An entry that is in the ledger is never queued a second time.
class Ledger {
 public:
  /// Holds an entry that was delivered. nullopt if it is held already: then it is skipped.
  std::optional<Ticket> take(StreamId id);

  /// Its handler is about to be called. False: it is not held any more.
  bool start(const Ticket& ticket);

  /// Its handler succeeded: it waits for an acknowledgement. Where that changes acks_due_at(), the
  /// new time is returned: somebody has to be told.
  std::optional<TimePoint> finish(const Ticket& ticket, TimePoint now);

  /// The same, but whoever calls this sends the acknowledgement itself, and settle()s it with
  /// `acks`, to which it is added.
  void finish_into(AckBatch& acks, const Ticket& ticket);

  /// It is not held any more: to be retried, left, released, or a peer's.
  void give_up(const Ticket& ticket);

  /// Acknowledgements to send, those that waited longest first; settle() must follow.
  AckBatch take_acks(std::size_t limit);

  /// The reply came (`acknowledged`: they are held no more) or did not (they wait again).
  void settle(const AckBatch& acks, bool acknowledged);

  /// When the acknowledgements that wait are to be sent by themselves: kAckDelay after the first of
  /// them, or at once if there are kAckBatch. nullopt: none waits.
  std::optional<TimePoint> acks_due_at() const;

  /// True if the last acknowledgement that was tried failed: until one succeeds, reading more would
  /// only pile up what cannot be acknowledged.
  bool acks_failing() const;

  /// The stream was made new: nothing of the old one is held or acknowledged.
  void start_over();

  std::vector<StreamId> running() const;
  std::size_t size() const;

  /// As many acknowledgements as are worth a round trip of their own.
  static constexpr std::size_t kAckBatch = 64;

  /// How long an acknowledgement waits for others, or for a read that takes it along.
  static constexpr Milliseconds kAckDelay{5};

 private:
  enum class State : std::uint8_t { kQueued, kRunning, kDone, kAcking };

  struct Waiting {
    StreamId id;
    TimePoint since;
  };

  mutable std::mutex mutex_;
  std::uint64_t making_ = 0;
  std::unordered_map<StreamId, State> held_;
  std::vector<Waiting> waiting_;  // kDone, in the order in which they were finished
  bool acks_failing_ = false;
};

}  // namespace millrace::detail
