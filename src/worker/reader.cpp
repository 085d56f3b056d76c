#include "worker/reader.hpp"

#include "net/deadline.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/server_error.hpp"
#include "worker/acknowledging.hpp"
#include "worker/intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace millrace::detail {
namespace {

/// A group that was made again so long ago was made well.
constexpr Milliseconds kCalm{1'000};

}  // namespace

Reader::Reader(const Shared& shared, Handling& handling, std::function<void(TimePoint)> due,
               std::function<void(const Error&)> fail)
    : shared_{shared},
      config_{shared.config},
      handling_{handling},
      due_{std::move(due)},
      fail_{std::move(fail)},
      page_size_{std::min(config_.prefetch, scripts::kMostIds)},
      read_size_{config_.prefetch},
      backoff_{config_.reconnect_min, config_.reconnect_max},
      remake_backoff_{config_.reconnect_min, config_.reconnect_max} {}

void Reader::run(const std::stop_token& stop) {
  stop_ = stop;
  while (!stop_.stop_requested() && shared_.status.state() != WorkerState::kFailed) {
    try {
      step();
    } catch (const Interrupted&) {
      // Only a stop interrupts; what the lost reply may have brought stays pending.
      due_(shared_.clock.now());  // the keeper looks for it
    } catch (const Error& error) {
      mend(error);
    } catch (const std::exception& error) {
      mend(ProtocolError{fmt::format("while reading '{}': {}", config_.key, error.what())});
    }
  }
}

void Reader::step() {
  if (!connection_) connect();
  if (!group_is_open_) open_group();
  if (group_is_missing_) remake_group();
  work_off();
  if (stop_.stop_requested() || wait_while_paused()) return;
  const auto run = [this](auto&&... args) { return eval(args...); };
  undo_resets(shared_, run);  // before they are looked for with the count of before
  renew_old_name();  // for another worker of the name nothing is taken, and kept from being idle
  if (stuck_) step_past_stuck();
  if (must_recover_.load()) recover();
  retry_due();
  if (!probing_) reap_if_due();
  if (!stop_.stop_requested() && wait_for_room()) read();
}

void Reader::connect() {
  connection_ = shared_.pool.connect(config_.key, stop_);
  must_recover_ = true;
  count(shared_.counters.connections);
  shared_.events.tell([&](Observer& observer) { observer.on_connected(connection_->endpoint()); });
}

void Reader::open_group() {
  const TimePoint sent_at = shared_.clock.now();
  // Who had our name before may still hold what is pending under it: then it is taken when it is
  // idle, as everybody else's.
  if (!shared_.group.open(*connection_)) recover_from_ = after(sent_at, config_.min_idle);
  // The mark is read before anything else is: what is lost now is to be made again there.
  renew_place();
  group_is_open_ = true;
  due_(sent_at);  // the keeper renews from now on
}

void Reader::renew_old_name() {
  // The keeper does that, unless it cannot reach the server or has not woken up yet.
  while (shared_.group.name_is_old(shared_.clock) && !stop_.stop_requested()) renew_place();
}

void Reader::renew_place() {
  shared_.group.renew([this](auto&&... args) { return eval(args...); }, shared_.clock);
}

void Reader::remake_group() {
  // Once at full speed. A group that vanishes again and again is a fault, although reads come
  // through in between.
  if (remade_at_ && shared_.clock.now() - *remade_at_ < kCalm) {
    pause_for(remake_backoff_.next());
  } else {
    remake_backoff_.reset();
  }
  if (stop_.stop_requested()) return;
  const Group::Remade remade = shared_.group.remake(*connection_);
  remade_at_ = shared_.clock.now();
  group_is_missing_ = false;
  if (remade.another_stream) shared_.ledger.start_over();
  cursor_ = StreamId{};
  shared_.events.log(
      Observer::LogLevel::kWarning,
      fmt::format(
          "group '{}' of '{}' was gone{}; {} to read after {}", config_.group, config_.key,
          remade.another_stream ? " with its stream" : "",
          remade.created ? "it has been made again" : "somebody made it again, I would have",
          remade.position.to_string()));
  shared_.events.tell([&](Observer& observer) { observer.on_group_recreated(remade.position); });
}

void Reader::recover() {
  if (shared_.clock.now() < recover_from_) return;
  must_recover_ = false;
  const std::uint64_t recovery = shared_.ledger.begin_recovery();
  try {
    StreamId last{};
    for (bool is_end = false; !is_end && !stop_.stop_requested();) {
      const auto own = scripts::list_own(
          *connection_, config_, last, scripts::kMostIds,
          {.command = "XPENDING", .key = config_.key, .stop = interrupted_.get_token()});
      is_end = own.size() < scripts::kMostIds;
      if (!own.empty()) last = own.back().id;
      auto orphans = shared_.ledger.orphans(own, shared_.clock.now());
      for (std::span<const Pending> rest{orphans}; !rest.empty();) {
        if (!wait_for_room()) {
          must_recover_ = true;
          return;
        }
        const TimePoint sent_at = shared_.clock.now();
        const auto some = rest.first(std::min(rest.size(), page_size_.get()));
        rest = rest.subspan(some.size());
        take_in(retake(some), sent_at);
        work_off();
      }
    }
  } catch (...) {
    must_recover_ = true;
    throw;
  }
  if (stop_.stop_requested()) return;
  for (const StreamId id : shared_.ledger.end_recovery(recovery)) tell_of_lost_lease(shared_, id);
}

void Reader::retry_due() {
  while (!stop_.stop_requested()) {
    const TimePoint now = shared_.clock.now();
    const auto due = shared_.ledger.due_retries(now, page_size_.get());
    if (due.empty()) return;
    take_in(retake(due), now);
    // What was not taken is a peer's.
    for (const Pending& entry : due) shared_.ledger.forget_parked(entry);
    work_off();
  }
}

scripts::Taken Reader::retake(std::span<const Pending> pending) {
  try {
    return in_page([&](std::size_t) {
      return scripts::retake([this](auto&&... args) { return eval(args...); }, config_, pending);
    });
  } catch (const TimeoutError&) {
    // The first time it may be the network.
    const auto alone = pending.size() == 1 ? std::optional{pending.front().id} : std::nullopt;
    if (alone && alone == slow_) stuck_ = pending.front();
    slow_ = stuck_ ? std::nullopt : alone;
    throw;
  }
}

void Reader::step_past_stuck() {
  const TimePoint now = shared_.clock.now();
  const scripts::Hold start{stuck_->id, stuck_->deliveries, stuck_->deliveries + 1};
  const auto found =
      scripts::hold([this](auto&&... args) { return eval(args...); }, config_, {&start, 1});
  const StreamId id = std::exchange(stuck_, std::nullopt)->id;
  if (found.front() != scripts::Holding::kOurs) return;
  shared_.events.log(
      Observer::LogLevel::kWarning,
      fmt::format("entry {} of '{}' did not arrive within the time-out, not even when it was asked "
                  "for alone: that counts as a start of its handler that failed",
                  id.to_string(), config_.key));
  Work work{
      .entry = Entry{id, {}, true}, .deliveries = start.next, .reclaimed = true, .leased_at = now};
  if (!shared_.ledger.reserve(work)) return;
  if (const auto running = shared_.ledger.start(work.ticket, stop_)) {
    handling_.never_arrived(*running);
  }
}

scripts::Taken Reader::in_page(FunctionRef<scripts::Taken(std::size_t)> ask) {
  try {
    scripts::Taken page = ask(page_size_.get());
    page_size_.arrived();
    slow_.reset();
    return page;
  } catch (const TimeoutError&) {
    page_size_.timed_out();
    throw;
  }
}

void Reader::reap_if_due() {
  if (config_.reap_every == Milliseconds{0}) return;
  const TimePoint now = shared_.clock.now();
  if (now >= next_sweep_) {
    sweeping_ = true;
    std::uniform_real_distribution<> jitter{0.8, 1.2};
    next_sweep_ =
        now + std::chrono::duration_cast<Milliseconds>(config_.reap_every * jitter(random_));
  }
  if (!sweeping_ && now < next_page_) return;
  next_page_ = now + config_.block;
  const auto run = [this](auto&&... args) { return eval(args...); };
  const std::size_t room = shared_.ledger.room();
  if (room == 0) return;
  scripts::Taken taken;
  try {
    taken = in_page([&](std::size_t count) {
      return scripts::take(run, config_, cursor_, std::min(count, room));
    });
  } catch (const PermissionError& error) {
    return reaping_refused(error);
  }
  shared_.status.set_hampered(Status::Part::kReaping, false);
  cursor_ = taken.next_cursor;
  if (cursor_ == StreamId{}) sweeping_ = false;
  take_in(std::move(taken), now);
  work_off();
}

void Reader::reaping_refused(const Error& error) {
  // Reading goes on without it.
  shared_.status.set_hampered(Status::Part::kReaping, true);
  if (const auto line = reaping_faults_.report(error, shared_.clock.now())) {
    shared_.events.log(Observer::LogLevel::kWarning, *line);
  }
  sweeping_ = false;
  next_page_ = after(shared_.clock.now(), kSlowPause);
  next_sweep_ = std::max(next_sweep_, next_page_);
}

void Reader::take_in(scripts::Taken&& taken, TimePoint sent_at) {
  hold_taken(shared_, std::move(taken), sent_at);
  if (shared_.ledger.settlements() > 0) due_(shared_.clock.now());
}

void Reader::read() {
  if (shared_.ledger.acks_failing()) flush_acks();
  const std::size_t room = std::min(shared_.ledger.room(), read_size_.get());
  if (room == 0) return;
  renew_old_name();  // scripts ask for themselves whether the name is still ours
  if (stop_.stop_requested()) return;
  Acknowledging acks{shared_, kMostAcks};
  const TimePoint sent_at = shared_.clock.now();
  EntryBatch entries = read_in_time(acks, room);
  well();
  const std::size_t came = entries.size();
  const std::size_t held = hold_new(shared_, std::move(entries), sent_at);
  // What was held when it came again may be let go of at this moment: then nobody would hold it.
  if (held < came) must_recover_ = true;
  if (stop_.stop_requested()) due_(sent_at);  // the keeper gives it back
  undo_resets(shared_, [this](auto&&... args) { return eval(args...); });
  work_off();
  if (acks.error()) acks.error()->raise();
}

EntryBatch Reader::read_in_time(Acknowledging& acks, std::size_t room) {
  try {
    EntryBatch entries = read_new(acks, room);
    if (!entries.empty()) read_size_.arrived();
    return entries;
  } catch (const TimeoutError&) {
    read_size_.timed_out();  // what it was to bring comes by recovery, in pages
    throw;
  }
}

Milliseconds Reader::time_to_block() const {
  if (probing_ || sweeping_) return Milliseconds{0};
  const TimePoint now = shared_.clock.now();
  Milliseconds block = config_.block;
  // While others handle, or the keeper parks what has just failed, it is to be retried on time.
  const bool can_be_ended = connection_->client_id() != 0 && shared_.gate.is_endable();
  if (!can_be_ended || !shared_.ledger.is_idle()) block = std::min(block, kLateRetry);
  return std::min(block, left_until(shared_.ledger.next_retry(now), now));
}

EntryBatch Reader::read_new(Acknowledging& acks, std::size_t room) {
  ReadGate::Visit visit{shared_.gate, connection_->client_id(), shared_.clock.now()};
  if (!visit.is_allowed()) return {};
  // Asked for from inside: who makes a retry from now on finds the read, and has it ended.
  const ReadOptions options{.count = room, .block = time_to_block()};
  visit.ends_at(after(shared_.clock.now(), options.block));
  Reply reply;
  // A server may start the block time anew when a peer wins the entry that woke it: hence twice.
  const PipelineResult result = connection_->pipeline(
      {.command = "XREADGROUP",
       .key = config_.key,
       .block = 2 * options.block,
       .stop = interrupted_.get_token(),
       .hang_up = hung_up_.get_token()},
      [&](RequestBuffer& request) {
        acks.write(request);  // first: what stands behind a read that waits, waits with it
        commands::xreadgroup(request, config_.key, config_.group, config_.consumer, options);
      },
      [&](std::size_t index, Reply next) {
        if (index < acks.commands()) {
          acks.settle(next.root());
          acks.tell();  // now, since the read may wait for long
        } else {
          reply = std::move(next);
        }
      });
  if (result.error) result.error->raise();
  if (reply.root().is_error()) {
    server_error(reply.root().text(),
                 {.command = "XREADGROUP", .key = config_.key, .endpoint = connection_->endpoint()})
        .raise();
  }
  return decode::read(std::move(reply));
}

void Reader::work_off() {
  if (config_.concurrency > 1) return;  // others do
  const auto run = [this](auto&&... args) { return eval(args...); };
  std::vector<Work> works;
  while (!stop_.stop_requested()) {
    works.clear();
    handling_.fill(works);
    if (works.empty()) return;
    try {
      handling_.handle(works, run);
    } catch (...) {
      must_recover_ = true;  // what was let go of comes back by recovery
      throw;
    }
  }
}

bool Reader::wait_for_room() {
  // Retries and reaping go on while there is no room.
  const TimePoint now = shared_.clock.now();
  const TimePoint until = std::min(shared_.ledger.next_retry(now), after(now, config_.block));
  shared_.ledger.wait_for_room(stop_, until, shared_.clock);
  return !stop_.stop_requested() && (shared_.ledger.room() > 0 || shared_.ledger.acks_failing());
}

void Reader::flush_acks() {
  Acknowledging acks{shared_, kMostAcks};
  acks.send([this](auto&&... args) { return connection_->pipeline(args...); });
}

Reply Reader::eval(const CallSpec& spec, const Script& script,
                   std::span<const std::string_view> keys, std::span<const std::string_view> args) {
  CallSpec interruptible = spec;
  interruptible.stop = interrupted_.get_token();
  interruptible.block = config_.block;  // payloads take their time
  return connection_->eval(interruptible, script, keys, args);
}

bool Reader::wait_while_paused() {
  std::unique_lock lock{pause_mutex_};
  if (!paused_) return false;
  lock.unlock();
  shared_.status.move_to(WorkerState::kPaused);
  lock.lock();
  pause_changed_.wait(lock, stop_, [this] { return !paused_; });
  probing_ = true;
  return true;
}

void Reader::set_paused(bool paused) {
  std::lock_guard lock{pause_mutex_};
  paused_ = paused;
  pause_changed_.notify_all();
}

void Reader::pause_for(Milliseconds pause) {
  std::unique_lock lock{pause_mutex_};
  pause_changed_.wait_for(lock, stop_, pause, [] { return false; });
}

void Reader::mend(const Error& error) {
  if (!connection_ || !connection_->is_open()) end_connection(error);
  // No read may take them along for long.
  if (const auto due = shared_.ledger.acks_due_at()) due_(*due);
  switch (remedy_for(error)) {
    case Remedy::kNone:
      return;
    case Remedy::kRemakeGroup:
      if (!group_is_missing_) {
        shared_.events.tell([&](Observer& observer) { observer.on_group_lost(error); });
      }
      if (config_.on_missing_group == OnMissingGroup::kFail) break;
      group_is_missing_ = true;
      probing_ = true;
      return;
    case Remedy::kReconnect:
      if (connection_) end_connection(error);
      return degrade(error, backoff_.next());
    case Remedy::kRetry:
      return degrade(error, backoff_.next());
    case Remedy::kRetrySlowly:
      return degrade(error, kSlowPause);
    case Remedy::kFail:
      break;
  }
  fail_(error);
}

void Reader::end_connection(const Error& error) {
  connection_.reset();
  shared_.events.tell([&](Observer& observer) { observer.on_connection_lost(error); });
}

void Reader::degrade(const Error& error, Milliseconds pause) {
  if (stop_.stop_requested()) return;
  probing_ = true;
  shared_.status.move_to(WorkerState::kDegraded);
  if (const auto line = faults_.report(error, shared_.clock.now())) {
    shared_.events.log(Observer::LogLevel::kWarning, *line);
  }
  pause_for(pause);
}

void Reader::well() {
  backoff_.reset();
  if (!std::exchange(probing_, false)) return;
  shared_.status.move_to(WorkerState::kRunning);
  if (const auto line = faults_.recovered()) {
    shared_.events.log(Observer::LogLevel::kInfo, *line);
  }
}

}  // namespace millrace::detail
