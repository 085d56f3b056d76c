#include "worker/handling.hpp"

#include <array>
#include <exception>
#include <string>
#include <utility>

namespace millrace::detail {

Handling::Result Handling::handle(const Work& work, scripts::Eval eval) {
  const Turnstile::Pass pass{turnstile_};
  // The turn may have been long in coming.
  if (draining_.load(std::memory_order_relaxed)) return Result::kNotStarted;
  if (!ledger_.start(work.ticket)) return Result::kNotOurs;
  auto holding = scripts::Holding::kOurs;
  try {
    holding = look_again(work, eval);
  } catch (...) {
    ledger_.give_up(work.ticket);
    throw;
  }
  if (holding == scripts::Holding::kNotOurs) {
    ledger_.give_up(work.ticket);
    count(counters_.leases_lost);
    events_.tell([&](Observer& observer) { observer.on_lease_lost(work.entry.id()); });
    return Result::kNotOurs;
  }
  // What was trimmed while it waited is nowhere but here. A reaper may drop it meanwhile.
  if (holding == scripts::Holding::kTrimmed) ledger_.note_trimmed(std::array{work.entry.id()});

  const Delivery delivery{.entry = work.entry,
                          .attempt = work.reclaimed ? work.deliveries + 1 : 1,
                          .reclaimed = work.reclaimed,
                          .stop = give_up_.get_token(),
                          .stream = config_.key,
                          .group = config_.group,
                          .consumer = config_.consumer};
  const Verdict verdict = call(delivery);
  if (draining_.load(std::memory_order_relaxed)) finished_.fetch_add(1, std::memory_order_relaxed);
  if (verdict == Verdict::ack()) {
    count(counters_.succeeded);
    return Result::kSucceeded;
  }
  if (verdict == Verdict::retry()) count(counters_.failed);
  ledger_.leave(work.ticket, clock_.now(), config_.min_idle);
  return Result::kFailed;
}

scripts::Holding Handling::look_again(const Work& work, scripts::Eval eval) {
  // Nobody can have taken what was delivered to us less than `min_idle` ago. An entry that was
  // taken over has its start counted: the count that the server keeps is that of starts.
  const bool fresh = clock_.now() - work.leased_at < config_.min_idle / 2;
  if (fresh && !work.reclaimed) return scripts::Holding::kOurs;
  const std::uint64_t next = work.reclaimed ? work.deliveries + 1 : work.deliveries;
  const std::array holds{
      scripts::Hold{.id = work.entry.id(), .expected = work.deliveries, .next = next}};
  return scripts::hold(eval, consumer(), Milliseconds{0}, holds).front();
}

Verdict Handling::call(const Delivery& delivery) {
  events_.tell([&](Observer& observer) { observer.on_delivery(delivery); });
  std::string what;
  Verdict verdict = Verdict::retry();
  try {
    verdict = handler_(delivery);
  } catch (const std::exception& error) {
    what = error.what();
    if (what.empty()) what = "an exception without a text";
  } catch (...) {
    what = "an exception that is no std::exception";
  }
  if (!what.empty()) {
    events_.tell([&](Observer& observer) { observer.on_handler_exception(delivery, what); });
  }
  events_.tell([&](Observer& observer) { observer.on_verdict(delivery, verdict); });
  return verdict;
}

}  // namespace millrace::detail
