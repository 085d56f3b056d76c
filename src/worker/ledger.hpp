#pragma once

#include <millrace/entry.hpp>
#include <millrace/stream_id.hpp>

#include "core/clock.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace millrace::detail {

using WallTime = std::chrono::system_clock::time_point;

/// Names an entry that is held. Ids belong to one making of the stream: when it is made new, the
/// tickets of the old one mean nothing any more.
struct Ticket {
  StreamId id{};
  std::uint64_t making = 0;
};

/// An entry that is held, and what its handler needs.
struct Work {
  Ticket ticket{};
  Entry entry{};
  std::shared_ptr<const EntryBatch> batch{};  ///< Keeps `entry` alive.
  std::uint64_t deliveries = 1;               ///< As the server counts them now.
  bool reclaimed = false;
  bool start_counted = false;  ///< The start that comes next is in the server's count already.
  bool shed = false;           ///< Its payload is to be fetched again before it starts.
  TimePoint leased_at{};    ///< When the request was sent that delivered, took over or renewed it.
  TimePoint waits_since{};  ///< When it came, or when the retry was due for which it had rested.
  std::optional<std::size_t> lane{};  ///< Entries of one lane are handled in order, one by one.
  std::optional<WallTime> first_failed{};
};

/// What is to be done on the server about an entry that was handled in vain.
struct Settlement {
  enum class Kind : std::uint8_t {
    kPark,  ///< Let it wait in the pending list until `due`.
    kBury,  ///< Write its dead letter and acknowledge it.
  };
  Kind kind = Kind::kPark;
  Work work{};
  TimePoint due{};
  std::uint64_t attempts = 0;
  std::string reason{};
  std::optional<WallTime> failed{};
  bool trimmed = false;  ///< It has left the pending list with its payload: no owner to ask.
  std::string owner{};   ///< Or is pending for this one, who is silent, until its letter is there.
  bool had_no_lease = false;  ///< It ran out, by our clock: a peer may have done with it.
};

/// Acknowledgements on their way to the server.
struct AckBatch {
  std::vector<StreamId> ids{};
  std::uint64_t making = 0;
};

/// An entry that is ours, with the count that the server has for it.
struct Pending {
  StreamId id{};
  std::uint64_t deliveries = 0;
};

/// What this worker holds: every entry from its delivery until the reply to its acknowledgement,
/// and beside it what it has parked or left. No I/O, one mutex; safe from any thread.
///
/// Invariant: an id is in exactly one place and one state.
///
///     kQueued -> kRunning -> kDone -> kAcking -> gone          a success
///                kRunning -> kResting -> kQueued               a retry that its lane waits for
///                kRunning -> kSettling -> parked or gone       other failures
///
/// kAcking goes back to kDone when an acknowledgement failed, and any state ends by drop() or
/// start_over(). An entry that is held is never queued a second time. Of one lane at most one entry
/// is running, and none starts before one of a lower id that is held or awaited. What is queued
/// behind a resting one is shed: it has a lease and no payload, and holds no place.
class Ledger {
 public:
  struct Limits {
    std::size_t prefetch = 16;
    std::size_t prefetch_bytes = std::size_t{64} << 20;
    Milliseconds min_idle{30'000};
  };

  explicit Ledger(const Limits& limits) : limits_{limits} {}

  // ---- arriving

  /// Holds an entry that was delivered or taken over, and queues it. Its ticket is filled in. False
  /// if it is held already, or parked and not due: then it is skipped. If it was delivered, and not
  /// taken over, the server has begun to count anew: see resets().
  bool hold(Work& work) { return hold(work, true); }
  /// The same, but only start() starts it.
  bool reserve(Work& work) { return hold(work, false); }

  /// Of these own pending entries, those that nobody here knows: not held, not parked, not left.
  /// What is known and has begun to count anew is among resets() from now on.
  std::vector<Pending> orphans(std::span<const Pending> pending, TimePoint now);

  /// What was skipped although a read had brought it: the counts that the server is to have again,
  /// and when it is due if it is parked, else TimePoint::max(). reset_undone() must follow.
  std::vector<std::pair<Pending, TimePoint>> resets(std::size_t limit) const;
  void reset_undone(StreamId id, bool ours);

  /// How many entries a read may bring: the places that are free, 0 while acknowledgements fail.
  std::size_t room() const;

  /// Waits until there is room, but not longer than `until`.
  void wait_for_room(const std::stop_token& stop, TimePoint until, const Clock& clock) const;

  // ---- running

  /// The next entry that may start now; it is running from here on.
  std::optional<Work> next(TimePoint now);
  /// The same, and waits for one. nullopt: closed, or `stop`.
  std::optional<Work> wait_for_next(const std::stop_token& stop, const Clock& clock);
  /// A reserved one, as soon as its lane is free. nullopt: it is not held any more, or it is
  /// behind one that rests, or `stop`.
  std::optional<Work> start(const Ticket& ticket, const std::stop_token& stop);
  /// A reserved one, if its lane is free.
  std::optional<Work> try_start(const Ticket& ticket);

  /// Its handler is about to be called, with this token: it fires when the lease is lost, when
  /// `until` has passed, or by stop_calls(). nullopt: it is not held any more.
  std::optional<std::stop_token> begin_call(const Ticket& ticket, TimePoint until);
  /// The server is about to be told of its start, which changes its count there to `deliveries`. If
  /// the reply is lost, the entry may come back with that count, and no start more.
  void starting(const Ticket& ticket, std::uint64_t deliveries);
  /// It has refused: the entry is not ours, and not held any more. False: it was not held.
  bool start_refused(const Ticket& ticket);
  /// It could not be told yet: not started, and tried again when it is due.
  void start_put_off(const Ticket& ticket, TimePoint due);
  /// It has been told.
  void started(const Ticket& ticket, TimePoint sent_at, std::uint64_t deliveries);
  /// Gives its handler until then, if it had less. False: it has lost its lease.
  bool extend(const Ticket& ticket, TimePoint until);
  /// Its handler returned but somebody finishes it later: from now on it holds a place.
  void defer(const Ticket& ticket);
  /// Its payload was fetched again, which has renewed its lease.
  void fetched(const Work& work);
  /// Those of these that wait without a payload: somebody else has put them aside.
  void forget_shed(std::span<const StreamId> ids);
  /// It was not started after all, and stays queued.
  void put_back(const Ticket& ticket);

  /// Succeeded: it waits for an acknowledgement. Where that changes acks_due_at(), the new time is
  /// returned: somebody has to be told.
  std::optional<TimePoint> finish(const Ticket& ticket, TimePoint now);
  /// The same, but whoever calls this sends the acknowledgement itself, with the others
  /// of `acks`.
  void finish_into(AckBatch& acks, const Ticket& ticket);
  /// Failed: retried where it is when it is due, with its lane waiting. What is queued behind it
  /// keeps its lease, and gives up its payload. `alone`: a batch of it alone, to keep instead.
  void rest(const Ticket& ticket, TimePoint due, std::optional<WallTime> failed,
            std::shared_ptr<const EntryBatch> alone = {});
  /// Failed, with this to be done. Nothing if its lease is lost: then it is a peer's.
  void fail(Settlement&& settlement);
  /// Given up: not held any more, and no orphan until it has been idle for `min_idle`.
  void leave(const Ticket& ticket, TimePoint now);
  /// Not held any more: a peer's, or to be found again by recovery. False: it was not.
  bool drop(const Ticket& ticket);
  /// Nobody knows whether the server was told of its start: not held any more, to be found again by
  /// recovery. Until then its lane waits, though not for longer than its lease lasts.
  void await_recovery(const Ticket& ticket);
  /// From here to end_recovery() all that is pending for us is looked through.
  std::uint64_t begin_recovery();
  /// Those that were awaited before it began and have not come back are a peer's: their lanes go
  /// on. Returns them.
  std::vector<StreamId> end_recovery(std::uint64_t recovery);

  /// Waits until it runs no more, but not longer than `patience`.
  void wait_while_running(const Ticket& ticket, Milliseconds patience) const;

  // ---- settling

  /// What is to be done, oldest first; settled(), or unsettled(), must follow for each.
  std::vector<Settlement> take_settlements(std::size_t limit);
  void settled(const Settlement& settlement, bool ours);
  void unsettled(Settlement&& settlement);
  std::size_t settlements() const;
  /// One that is to wait although the server has nothing to let wait: from memory, when it is due.
  void rest_in_memory(const Settlement& settlement);
  /// One that the server found to be gone while it took it over, and whose dead letter is to be
  /// written yet. False: it is being seen to already.
  bool add_settlement(Settlement&& settlement);

  /// Acknowledgements to send, those that waited longest first; acknowledged() or
  /// not_acknowledged() must follow.
  AckBatch take_acks(std::size_t limit);
  /// The reply came: `count` of them were still pending, and none is held any more. Returns how
  /// many were a peer's: those that were not pending, but for what is no news. That is what was
  /// acknowledged before by a request whose reply was lost, what was trimmed, or what is known to
  /// be lost.
  std::size_t acknowledged(const AckBatch& acks, std::size_t count);
  /// No reply came: they wait again.
  void not_acknowledged(const AckBatch& acks);
  /// Waits until none waits for its acknowledgement, but not longer than `patience`.
  void wait_until_acknowledged(Milliseconds patience) const;
  /// When the acknowledgements that wait are to be sent by themselves: kAckDelay after the first of
  /// them, or at once if there are kAckBatch. nullopt: none waits.
  std::optional<TimePoint> acks_due_at() const;
  /// True if the last acknowledgement that was tried failed: until one succeeds, reading more would
  /// only pile up what cannot be acknowledged.
  bool acks_failing() const;
  /// The server has dropped these: an acknowledgement that finds nothing is no surprise.
  void note_trimmed(std::span<const StreamId> ids);

  // ---- leases

  /// All that is held and whose lease is to be kept.
  std::vector<Ticket> leases() const;
  /// The counts that the server is expected to have for these; what is no longer held is left out.
  std::vector<std::pair<Ticket, std::uint64_t>> counts_of(std::span<const Ticket> tickets) const;
  void renewed(const Ticket& ticket, TimePoint sent_at);
  /// When asked about it with this count, the server said that it is not ours. True if that is so,
  /// and news.
  bool lost(const Ticket& ticket, std::uint64_t deliveries);
  /// The server has it neither pending nor in the stream. True if its lease had run out by our
  /// clock: then a peer has done with it, and it is lost. (That it ran out has been told.)
  bool lost_if_expired(const Ticket& ticket);
  /// Fires the tokens of what has had no lease for `min_idle`, and of calls that took too long;
  /// what was queued is dropped. Returns them.
  std::vector<StreamId> expire(TimePoint now);
  /// When expire() has something to do. TimePoint::max(): nothing is held.
  TimePoint next_expiry() const;
  /// Fires the tokens of all calls.
  void stop_calls();

  /// Parked entries that are due. Once they were asked for, hold() or forget_parked() follows.
  std::vector<Pending> due_retries(TimePoint now, std::size_t limit);
  /// All parked entries, and when they are due.
  std::vector<std::pair<Pending, TimePoint>> parked() const;
  /// Not where it has been started, and parked again, since.
  void forget_parked(const Pending& entry);
  /// Queues what has rested. When the next parked or resting entry is due; TimePoint::max(): none.
  TimePoint next_retry(TimePoint now);
  /// The same time, and nothing is queued.
  TimePoint retry_due_at() const;
  /// Has those that rest in their lanes parked: for a worker that has nobody to wake them.
  void park_resting();

  /// How many pending entries the server should know under our name.
  std::size_t known_pending(TimePoint now);

  // ---- ending

  /// No entry starts from now on. What was queued or rested is dropped, and returned.
  std::vector<Work> close();
  /// Those of these that are queued and reserved are dropped, and returned.
  std::vector<Work> withdraw(std::span<const Ticket> tickets);
  /// The stream was made new: nothing of the old one is held or acknowledged.
  void start_over();

  std::vector<StreamId> running() const;
  bool holds(StreamId id) const;
  std::size_t size() const;
  std::size_t queued_bytes() const;
  /// Nothing is queued or runs, and of what failed all is settled: there is no retry to come but
  /// those of next_retry().
  bool is_idle() const;

  /// Since when the oldest entry waits that handlers have yet to finish.
  struct Unfinished {
    std::optional<TimePoint> running{};  ///< Of those that have a handler, or are about to.
    std::optional<TimePoint>
        startable{};  ///< Of those that could start. Not those behind in lanes.
  };
  Unfinished unfinished() const;

  /// As many acknowledgements as are worth a round trip of their own.
  static constexpr std::size_t kAckBatch = 64;
  /// How long an acknowledgement waits for others, or for a read that takes it along.
  static constexpr Milliseconds kAckDelay{5};
  /// Entries behind resting ones hold no place, but there are at most so many times `prefetch`.
  static constexpr std::size_t kMostWaiting = 16;
  /// Starts whose reply was lost that are remembered.
  static constexpr std::size_t kMostDoubts = 10'000;

 private:
  enum class State : std::uint8_t { kQueued, kRunning, kResting, kSettling, kDone, kAcking };

  struct Held {
    State state = State::kQueued;
    Work work{};
    std::size_t bytes = 0;
    bool reserved = false;
    bool deferred = false;
    bool starting = false;
    bool lost = false;
    bool expired = false;  ///< It had no lease for `min_idle`, by our clock.
    bool overdue = false;  ///< Its call takes too long: the lease is renewed no more.
    bool maybe_gone = false;
    TimePoint until{};  ///< kResting: when it is due. kRunning: when its call has taken too long.
    std::optional<std::stop_source> call{};
  };
  using HeldMap = std::unordered_map<StreamId, Held>;

  struct Lane {
    std::set<StreamId> entries{};  ///< Queued, running, resting or awaited.
    bool busy = false;
  };
  struct Waiting {
    StreamId id;
    TimePoint since;
  };
  struct Left {
    StreamId id;
    TimePoint until;
  };
  struct Awaited {
    std::size_t lane = 0;
    std::uint64_t recovery = 0;  ///< The last one that had begun before.
    TimePoint until{};           ///< When its lease has run out.
  };
  struct Parked {
    std::uint64_t deliveries = 0;
    TimePoint due{};
    std::optional<WallTime> first_failed{};
  };

  bool hold(Work& work, bool queue);
  bool waits_parked(const Work& work) const;
  void note_reset(StreamId id, const Held* held);
  static std::size_t bytes_of(const Entry& entry);
  void doubt_start(StreamId id, std::uint64_t deliveries);
  bool rests(const Lane& lane) const;
  void shed_behind(StreamId head, const Lane& lane);
  void shed(Held& held);
  bool is_behind_a_resting_one(const Held& held) const;
  Held* find(const Ticket& ticket);
  Held* find(const Ticket& ticket, State state);
  std::optional<Work> pop(TimePoint now);
  bool can_start(const Held& held) const;
  Work run(Held& held);
  void end_run(Held& held, State next);
  void leave_lane(const Held& held);
  void leave_lane(std::size_t lane, StreamId id);
  void offer_head(std::size_t lane);
  void wake_rested(TimePoint now);
  void erase(HeldMap::iterator held);
  template <typename IsOver>
  void stop_awaiting_if(IsOver&& is_over, std::vector<StreamId>& ids);
  void forget_left(TimePoint now);
  void forget_parked_locked(StreamId id);
  std::size_t room_locked() const;
  static void start_acking(AckBatch& acks, StreamId id, Held& held);

  const Limits limits_;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any changed_;
  std::uint64_t making_ = 0;
  bool closed_ = false;
  HeldMap held_;
  std::deque<StreamId> ready_;  // hints in order: pop() looks whether they hold
  std::unordered_map<std::size_t, Lane> lanes_;
  std::set<std::pair<TimePoint, StreamId>> resting_;
  std::size_t queued_ = 0;  // with the deferred ones
  std::size_t shed_ = 0;    // of the queued ones
  std::size_t bytes_ = 0;
  std::vector<Waiting> waiting_;  // kDone, in the order in which they were finished
  std::unordered_map<StreamId, Awaited> awaited_;  // of these, none is in held_
  std::uint64_t recovery_ = 0;
  std::deque<Settlement> settlements_;
  std::set<StreamId> trimmed_;  // by add_settlement(), until they are settled
  std::unordered_map<StreamId, Parked> parked_;
  std::set<std::pair<TimePoint, StreamId>> parked_by_due_;
  std::unordered_map<StreamId, TimePoint> left_;  // until when
  std::deque<Left> left_in_order_;                // one that was left again is there again
  // What a read has brought again, with the count that the server had before.
  std::unordered_map<StreamId, std::uint64_t> resets_;
  bool acks_failing_ = false;
  bool calls_stopped_ = false;
  std::unordered_map<StreamId, std::uint64_t> starts_in_doubt_;  // with the count they may have
};

}  // namespace millrace::detail
