#include "worker/handling.hpp"

#include "net/deadline.hpp"
#include "worker/call.hpp"
#include "worker/intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <random>
#include <utility>

namespace millrace::detail {
namespace {

/// The start that comes next, as the server's count will have it.
std::uint64_t next_start(const Work& work) noexcept {
  return work.reclaimed && !work.start_counted ? work.deliveries + 1 : work.deliveries;
}

/// How long ago it was appended, if its id is a time.
Milliseconds age_of(StreamId id, WallTime now) {
  const auto milliseconds = std::chrono::floor<Milliseconds>(now.time_since_epoch()).count();
  const auto at = static_cast<std::uint64_t>(std::max<Milliseconds::rep>(milliseconds, 0));
  return Milliseconds{static_cast<Milliseconds::rep>(at - std::min(at, id.ms))};
}

/// A batch of it alone, since what rests for long is not to keep all those in memory that it came
/// with. Null if it is alone already.
std::shared_ptr<const EntryBatch> alone(const Work& work) {
  if (!work.batch || work.batch->size() == 1) return nullptr;
  const OwnedEntry owned = work.entry.to_owned();
  return std::make_shared<const EntryBatch>(EntryBatch::of({&owned, 1}));
}

}  // namespace

std::size_t Handling::entries_a_call() const noexcept {
  return std::holds_alternative<Handler>(handler_) ? 1 : config_.prefetch;
}

bool Handling::is_last(const Work& work) const noexcept {
  return config_.letters.enabled && next_start(work) >= config_.max_deliveries;
}

std::vector<Handling::Result> Handling::handle(std::span<const Work> works, scripts::Eval eval,
                                               Acks* acks) {
  const Turnstile::Pass pass{turnstile_};
  std::vector<Result> results(works.size(), Result::kNotStarted);
  std::size_t first = 0;
  try {
    while (first < works.size()) {
      // The last start of an entry is made alone; the others of a batch, together.
      std::size_t end = first + 1;
      const bool alone = is_last(works[first]);
      while (!alone && end < works.size() && !is_last(works[end])) ++end;
      const auto some = works.subspan(first, end - first);
      const Company::Pass company{shared_.company,
                                  alone ? Company::Pass::Wish::kAlone : Company::Pass::Wish::kAny};
      // The turn may have been long in coming.
      if (is_draining()) {
        for (const Work& work : some) shared_.ledger.put_back(work.ticket);
      } else if (!company.is_inside()) {
        try_again(works[first], after(shared_.clock.now(), config_.retry_backoff),
                  works[first].deliveries, std::nullopt);
      } else {
        // If it ends the process, what succeeded before it is not to be repeated.
        if (alone) acknowledge_now(acks);
        const auto attempts = prepare(some, first, eval, results);
        if (!attempts.empty()) call(attempts, results, acks == nullptr ? nullptr : &acks->done);
        first = end;  // whatever comes now, they have had their call
        // If a neighbour ends the process before it is acknowledged, it is found to have had its
        // last start, and is put aside although it succeeded.
        if (alone) end_alone(some.front().ticket, results[end - 1], acks);
      }
      first = end;
    }
  } catch (...) {
    for (std::size_t i = first; i < works.size(); ++i) {
      shared_.ledger.await_recovery(works[i].ticket);
    }
    throw;
  }
  return results;
}

void Handling::acknowledge_now(Acks* acks) {
  if (acks != nullptr) acks->send();
  shared_.ledger.wait_until_acknowledged(Company::kPatience);
}

void Handling::end_alone(const Ticket& ticket, Result result, Acks* acks) {
  if (result == Result::kDeferred) {
    shared_.ledger.wait_while_running(ticket, Company::kPatience);
  } else if (result != Result::kSucceeded) {
    return;
  }
  acknowledge_now(acks);
}

bool Handling::is_fresh(const Work& work) const {
  return shared_.clock.now() - work.leased_at < config_.min_idle / 2;
}

std::vector<Handling::Attempt> Handling::prepare(std::span<const Work> works, std::size_t first,
                                                 scripts::Eval eval, std::span<Result> results) {
  std::vector<Attempt> attempts;
  attempts.reserve(works.size());
  for (std::size_t i = 0; i < works.size(); ++i) {
    const Work& work = works[i];
    if (config_.letters.enabled && next_start(work) > config_.max_deliveries) {
      bury(work, work.deliveries,
           fmt::format("its handler was started {} times and did not succeed", work.deliveries));
      results[first + i] = Result::kFailed;
      continue;
    }
    attempts.push_back({.work = work, .number = next_start(work), .index = first + i});
  }
  make_sure(attempts, eval, results);

  const TimePoint until = config_.max_handler_time
                              ? after(shared_.clock.now(), *config_.max_handler_time)
                              : TimePoint::max();
  std::erase_if(attempts, [&](Attempt& attempt) {
    const auto stop = shared_.ledger.begin_call(attempt.work.ticket, until);
    if (stop) {
      attempt.stop = *stop;
    } else {
      results[attempt.index] = Result::kNotOurs;
      shared_.ledger.drop(attempt.work.ticket);
    }
    return !stop;
  });
  if (config_.max_handler_time) due_(until);
  return attempts;
}

void Handling::make_sure(std::vector<Attempt>& attempts, scripts::Eval eval,
                         std::span<Result> results) {
  fetch(attempts, eval, results);
  // Who has taken the name since it was renewed may have taken the entries with it.
  while (shared_.group.name_is_old(shared_.clock)) {
    if (is_draining()) {
      for (const Attempt& attempt : attempts) shared_.ledger.put_back(attempt.work.ticket);
      return attempts.clear();  // for the keeper to give back
    }
    shared_.group.renew(eval, shared_.clock);
  }
  // Nobody can have taken what was delivered to us less than `min_idle` ago. An entry that was
  // taken over has its start counted: the count that the server keeps is that of starts.
  std::vector<Attempt*> unsure;
  for (Attempt& attempt : attempts) {
    if (attempt.work.reclaimed || !is_fresh(attempt.work)) unsure.push_back(&attempt);
  }
  while (!unsure.empty()) {
    ask(unsure, eval, results);
    // A process or a machine that was suspended meanwhile has a reply that came long ago.
    unsure.clear();
    for (Attempt& attempt : attempts) {
      if (attempt.is_gone || is_fresh(attempt.work)) continue;
      if (!is_draining()) {
        unsure.push_back(&attempt);
        continue;
      }
      attempt.is_gone = true;
      shared_.ledger.drop(attempt.work.ticket);
    }
  }
  std::erase_if(attempts, [](const Attempt& attempt) { return attempt.is_gone; });
}

void Handling::fetch(std::vector<Attempt>& attempts, scripts::Eval eval,
                     std::span<Result> results) {
  std::vector<Work*> shed;
  for (Attempt& attempt : attempts) {
    if (attempt.work.shed) shed.push_back(&attempt.work);
  }
  if (shed.empty()) return;
  fetch_again(shared_, eval, shed);
  const auto gone = std::erase_if(attempts, [&](const Attempt& attempt) {
    if (attempt.work.shed) results[attempt.index] = Result::kNotOurs;
    return attempt.work.shed;
  });
  if (gone > 0) due_(shared_.clock.now());  // there may be something to put aside
}

void Handling::ask(std::span<Attempt* const> attempts, scripts::Eval eval,
                   std::span<Result> results) {
  std::vector<scripts::Hold> holds;
  holds.reserve(attempts.size());
  for (const Attempt* const attempt : attempts) {
    const Work& work = attempt->work;
    holds.push_back({work.ticket.id, work.deliveries, attempt->number});
    shared_.ledger.starting(work.ticket, attempt->number);
  }
  const TimePoint sent_at = shared_.clock.now();
  const auto found = scripts::hold(eval, config_, holds);
  for (std::size_t i = 0; i < found.size(); ++i) {
    Attempt& attempt = *attempts[i];
    const Ticket& ticket = attempt.work.ticket;
    const bool is_a_peers = found[i] == scripts::Holding::kNotOurs;
    const bool was_a_peers =
        found[i] == scripts::Holding::kGone && shared_.ledger.lost_if_expired(ticket);
    if (is_a_peers || was_a_peers) {
      attempt.is_gone = true;
      results[attempt.index] = Result::kNotOurs;
      const bool was_held = shared_.ledger.start_refused(ticket);
      if (was_held && is_a_peers) tell_of_lost_lease(shared_, ticket.id);  // else it was told
      continue;
    }
    if (found[i] == scripts::Holding::kCountedAnew) {
      attempt.is_gone = true;
      shared_.ledger.start_put_off(ticket, after(shared_.clock.now(), scripts::kAskAgain));
      continue;
    }
    // What is no longer in the stream is handled from memory: there is no count to keep for it.
    if (found[i] != scripts::Holding::kOurs) shared_.ledger.note_trimmed({&ticket.id, 1});
    attempt.work.deliveries = attempt.number;
    attempt.work.leased_at = std::max(attempt.work.leased_at, sent_at);
    shared_.ledger.started(ticket, sent_at, attempt.number);
  }
}

Delivery Handling::delivery_of(const Attempt& attempt, Call* call) const {
  return {.entry = attempt.work.entry,
          .attempt = attempt.number,
          .reclaimed = attempt.work.reclaimed,
          .stop = attempt.stop,
          .stream = config_.key,
          .group = config_.group,
          .consumer = config_.consumer,
          .call = call};
}

Handling::Answer Handling::ask(std::span<const Delivery> deliveries) {
  Answer answer;
  auto& [verdicts, what] = answer;
  try {
    if (Handler* const one = std::get_if<Handler>(&handler_)) {
      verdicts.push_back((*one)(deliveries.front()));
    } else {
      verdicts = std::get<BatchHandler>(handler_)(deliveries);
      if (verdicts.size() != deliveries.size()) {
        what = fmt::format("the handler returned {} verdicts for {} entries", verdicts.size(),
                           deliveries.size());
      }
    }
  } catch (const PermanentError& error) {
    what = error.what();
    verdicts.assign(deliveries.size(), Verdict::dead_letter(what));
    if (what.empty()) what = "a PermanentError without a text";
  } catch (const std::exception& error) {
    what = error.what();
    if (what.empty()) what = "an exception without a text";
    verdicts.clear();
  } catch (...) {
    what = "an exception that is no std::exception";
    verdicts.clear();
  }
  if (verdicts.size() != deliveries.size()) verdicts.assign(deliveries.size(), Verdict::retry());
  return answer;
}

void Handling::call(std::span<const Attempt> attempts, std::span<Result> results, AckBatch* acks) {
  std::deque<Call> calls;  // Deliveries point to them
  std::vector<Delivery> deliveries;
  deliveries.reserve(attempts.size());
  for (const Attempt& attempt : attempts) {
    deliveries.push_back(delivery_of(attempt, &calls.emplace_back(*this, attempt)));
  }
  Answer answer;
  Ended ended;
  shared_.events.around(deliveries, [&] {
    for (const Delivery& delivery : deliveries) {
      shared_.events.tell([&](Observer& observer) { observer.on_delivery(delivery); });
    }
    const TimePoint started = shared_.clock.now();
    shared_.counters.progress.store(started, std::memory_order_relaxed);
    answer = ask(deliveries);
    ended = now();
    if (config_.metrics) shared_.counters.handler_time.add(ended.at - started);
    for (std::size_t i = 0; i < deliveries.size(); ++i) {
      tell_of(deliveries[i], calls[i].deferred() ? nullptr : &answer.verdicts[i], answer.what);
    }
  });

  const auto& [verdicts, what] = answer;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    if (const auto& deferred = calls[i].deferred()) {
      results[attempts[i].index] = Result::kDeferred;
      shared_.ledger.defer(attempts[i].work.ticket);
      if (!what.empty()) deferred->finish(verdicts[i]);
      continue;
    }
    results[attempts[i].index] = conclude(attempts[i], verdicts[i], what, ended, acks);
  }
}

void Handling::tell_of(const Delivery& delivery, const Verdict* verdict, std::string_view what) {
  shared_.events.tell([&](Observer& observer) {
    if (!what.empty()) observer.on_handler_exception(delivery, what);
  });
  shared_.events.tell([&](Observer& observer) {
    if (verdict != nullptr) observer.on_verdict(delivery, *verdict);
  });
}

Handling::Ended Handling::now() const {
  Ended ended{.at = shared_.clock.now()};
  shared_.counters.progress.store(ended.at, std::memory_order_relaxed);
  if (config_.metrics) ended.wall = std::chrono::system_clock::now();
  return ended;
}

void Handling::finish_deferred(const Attempt& attempt, const Verdict& verdict) {
  const Ended ended = now();
  conclude(attempt, verdict, {}, ended, nullptr);
  // Now, so that a stop() in there does not wait for this call.
  tell_of(delivery_of(attempt, nullptr), &verdict, {});
}

Handling::Result Handling::conclude(const Attempt& attempt, const Verdict& verdict,
                                    std::string_view what, const Ended& ended, AckBatch* acks) {
  if (is_draining()) finished_.fetch_add(1, std::memory_order_relaxed);
  if (ended.wall) {
    shared_.counters.last_completion.store(*ended.wall, std::memory_order_relaxed);
  }
  const Ticket& ticket = attempt.work.ticket;
  struct Told {
    const Handling& handling;
    ~Told() {  // the keeper waits for the last of them
      if (handling.is_draining()) handling.due_(handling.shared_.clock.now());
    }
  } const told{*this};
  switch (verdict.kind()) {
    case Verdict::Kind::kAck:
      break;
    case Verdict::Kind::kLeavePending:
      shared_.ledger.leave(ticket, ended.at);
      return Result::kFailed;
    default:
      return fail(attempt, verdict, what);
  }
  count(shared_.counters.succeeded);
  if (ended.wall) shared_.counters.age.add(age_of(ticket.id, *ended.wall));
  if (acks != nullptr) {
    shared_.ledger.finish_into(*acks, ticket);
  } else if (const auto due = shared_.ledger.finish(ticket, ended.at)) {
    due_(*due);
  }
  return Result::kSucceeded;
}

Handling::Result Handling::fail(const Attempt& attempt, const Verdict& verdict,
                                std::string_view what) {
  count(shared_.counters.failed);
  const bool is_permanent = verdict.kind() == Verdict::Kind::kDeadLetter;
  if (config_.letters.enabled && (is_permanent || attempt.number >= config_.max_deliveries)) {
    bury(attempt.work, attempt.number,
         is_permanent ? verdict.reason()
                      : fmt::format("its handler failed {} times{}{}", attempt.number,
                                    what.empty() ? "" : ": ", what));
    return Result::kFailed;
  }
  count(shared_.counters.retried);
  const Milliseconds delay =
      verdict.kind() == Verdict::Kind::kRetryAfter ? verdict.delay() : backoff(attempt.number);
  try_again(attempt.work, after(shared_.clock.now(), delay), attempt.number,
            std::chrono::system_clock::now());
  return Result::kFailed;
}

void Handling::try_again(const Work& work, TimePoint due, std::uint64_t attempts,
                         std::optional<WallTime> failed) {
  // What is parked has left its lane: others would overtake it.
  if (work.lane) {
    shared_.ledger.rest(work.ticket, due, failed, alone(work));
    if (shared_.gate.inside_beyond(after(due, kLateRetry))) due_(shared_.clock.now());
    return;
  }
  shared_.ledger.fail({.kind = Settlement::Kind::kPark,
                       .work = work,
                       .due = due,
                       .attempts = attempts,
                       .failed = failed});
  due_(shared_.clock.now());
}

void Handling::bury(const Work& work, std::uint64_t attempts, std::string reason) {
  shared_.ledger.fail({.kind = Settlement::Kind::kBury,
                       .work = work,
                       .attempts = attempts,
                       .reason = std::move(reason),
                       .failed = std::chrono::system_clock::now()});
  due_(shared_.clock.now());
}

Milliseconds Handling::backoff(std::uint64_t attempt) const {
  const auto doublings = std::min<std::uint64_t>(attempt - 1, 32);
  const auto longest = static_cast<double>(config_.min_idle.count());
  const double delay = static_cast<double>(config_.retry_backoff.count()) *
                       static_cast<double>(std::uint64_t{1} << doublings);
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::uniform_real_distribution<> jitter{0.5, 1.0};
  return Milliseconds{static_cast<Milliseconds::rep>(std::min(delay, longest) * jitter(random))};
}

void Handling::fill(std::vector<Work>& works) {
  while (works.size() < entries_a_call()) {
    auto work = shared_.ledger.next(shared_.clock.now());
    if (!work) return;
    works.push_back(std::move(*work));
  }
}

void Handling::never_arrived(const Work& work) {
  fail({.work = work, .number = work.deliveries}, Verdict::retry(),
       "it did not arrive within the time-out, not even when it was asked for alone");
}

void Handling::give_up() { shared_.ledger.stop_calls(); }

}  // namespace millrace::detail
