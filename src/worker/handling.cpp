#include "worker/handling.hpp"

#include <array>
#include <exception>
#include <string>
#include <utility>

namespace millrace::detail {
namespace {

/// A worker whose handler, or observer, is called on this thread. A handler may call another
/// worker's reap_idle_pending(), so there can be one inside another.
class Inside {
 public:
  explicit Inside(const Handling* handling)
      : handling_{handling}, outer_{std::exchange(innermost, this)} {}
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { innermost = outer_; }

  static bool has(const Handling* handling) noexcept {
    for (const Inside* inside = innermost; inside != nullptr; inside = inside->outer_) {
      if (inside->handling_ == handling) return true;
    }
    return false;
  }

  // What was trimmed while it waited is nowhere but here. A reaper may drop it meanwhile.
  if (holding == scripts::Holding::kTrimmed) ledger_.note_trimmed(std::array{work.entry.id()});
 private:
  static thread_local const Inside* innermost;

  const Handling* handling_;
  const Inside* outer_;
};

thread_local const Inside* Inside::innermost = nullptr;

}  // namespace

bool Handling::is_inside() const noexcept { return Inside::has(this); }

Handling::Result Handling::handle(const Work& work, scripts::Eval eval) {
  const Turnstile::Pass pass{turnstile_};
  const Inside mark{this};
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
