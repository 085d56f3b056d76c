#pragma once

#include <millrace/consumer_worker.hpp>

#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "worker/config.hpp"
#include "worker/events.hpp"
#include "worker/ledger.hpp"
#include "worker/scripts.hpp"
#include "worker/stats.hpp"
#include "worker/turnstile.hpp"

#include <atomic>
#include <cstdint>
#include <stop_token>
#include <vector>

namespace millrace::detail {

/// An entry that is held and waits for its handler. The batch of its `entry` must outlive it.
struct Work {
  Ticket ticket{};
  Entry entry{};
  std::uint64_t deliveries = 1;  ///< As the server counts them now.
  bool reclaimed = false;
  TimePoint leased_at{};  ///< When the request was sent that delivered it or took it over.
};

/// Calls the user's handler, one call at a time, and turns what comes of it into a verdict.
///
/// Invariant: between a call's start and its end the entry is running in the ledger, so nobody
/// starts it a second time. No exception of the handler leaves.
class Handling {
 public:
  Handling(const WorkerConfig& config, Handler handler, Ledger& ledger, Counters& counters,
           const Events& events, const Clock& clock)
      : config_{config},
        handler_{std::move(handler)},
        ledger_{ledger},
        counters_{counters},
        events_{events},
        clock_{clock} {}

  enum class Result : std::uint8_t {
    kSucceeded,   ///< The entry is still running in the ledger: acknowledge it.
    kFailed,      ///< To be retried, or left: it is no longer held.
    kNotOurs,     ///< Not called: the entry is a peer's, or its stream is gone.
    kNotStarted,  ///< Not called, since a stop came: the entry is still queued in the ledger.
  };

  /// Waits for the turn, makes sure that the entry is still ours where that is in doubt, and calls
  /// the handler. Throws only what `eval` throws; then the handler was not called and the entry is
  /// not held.
  Result handle(const Work& work, scripts::Eval eval);

  /// Fires Delivery::stop of the call that runs and of those that follow.
  void give_up() noexcept { give_up_.request_stop(); }

  /// From now on calls that return are counted as finished after the stop.
  void drain() noexcept { draining_.store(true, std::memory_order_relaxed); }
  std::uint64_t finished_while_draining() const noexcept {
    return finished_.load(std::memory_order_relaxed);
  }

  scripts::Consumer consumer() const noexcept {
    return {config_.key, config_.group, config_.consumer};
  }

 private:
  scripts::Holding look_again(const Work& work, scripts::Eval eval);
  Verdict call(const Delivery& delivery);

  const WorkerConfig& config_;
  Handler handler_;
  Ledger& ledger_;
  Counters& counters_;
  const Events& events_;
  const Clock& clock_;
  Turnstile turnstile_;
  std::stop_source give_up_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> finished_{0};
};

}  // namespace millrace::detail
