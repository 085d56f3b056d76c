#pragma once

#include <millrace/stream_id.hpp>

#include "core/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
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
  /// So many of them may be pending no more although nobody took them: they were acknowledged
  /// before and the reply was lost, or their payload was trimmed.
  std::size_t maybe_gone = 0;
};

/// What this worker holds: every entry from its delivery until the reply to its acknowledgement.
/// No I/O, one mutex; safe from any thread.
///
/// Invariant: an id is in exactly one state. kQueued -> kRunning -> kDone -> kAcking -> gone, with
/// kAcking -> kDone when an acknowledgement failed, and any state -> gone by give_up(), leave() or
/// start_over(). An entry that is in the ledger is never queued a second time.
class Ledger {
 public:
  /// Holds an entry that was delivered. nullopt if it is held already: then it is skipped.
  std::optional<Ticket> take(StreamId id);

  /// The same for an entry that was found pending for us. nullopt also if we left it: then it is
  /// not due yet.
  std::optional<Ticket> take_orphan(StreamId id, TimePoint now);

  /// Its handler is about to be called. False: it is not held any more.
  bool start(const Ticket& ticket);

  /// Its handler succeeded: it waits for an acknowledgement. Where that changes acks_due_at(), the
  /// new time is returned: somebody has to be told.
  std::optional<TimePoint> finish(const Ticket& ticket, TimePoint now);

  /// The same, but whoever calls this sends the acknowledgement itself, and settle()s it with
  /// `acks`, to which it is added.
  void finish_into(AckBatch& acks, const Ticket& ticket);

  /// It is not held any more: released, or a peer's, or to be found again by recovery.
  void give_up(const Ticket& ticket);

  /// It is not held any more, and comes back when it has been idle for `min_idle`. Until then it is
  /// no orphan.
  void leave(const Ticket& ticket, TimePoint now, Milliseconds min_idle);

  /// The server has dropped these: an acknowledgement that finds nothing is no surprise.
  void note_trimmed(std::span<const StreamId> ids);

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

  struct Held {
    State state = State::kQueued;
    bool maybe_gone = false;
  };

  struct Waiting {
    StreamId id;
    TimePoint since;
  };

  struct Left {
    StreamId id;
    TimePoint until;
  };

  std::optional<Ticket> hold(StreamId id);
  Held* find(const Ticket& ticket, State state);
  void forget_left(TimePoint now);
  static void start_acking(AckBatch& acks, StreamId id, Held& held);

  mutable std::mutex mutex_;
  std::uint64_t making_ = 0;
  std::unordered_map<StreamId, Held> held_;
  std::vector<Waiting> waiting_;                  // kDone, in the order in which they were finished
  std::unordered_map<StreamId, TimePoint> left_;  // until when
  std::deque<Left> left_in_order_;                // one that was left again is there again
  bool acks_failing_ = false;
};

}  // namespace millrace::detail
