#pragma once

#include <millrace/handler.hpp>

#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "net/process.hpp"
#include "worker/company.hpp"
#include "worker/ledger.hpp"
#include "worker/scripts.hpp"
#include "worker/shared.hpp"
#include "worker/turnstile.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace millrace::detail {

class Handling;

/// What is left of a Handling for those who may come after it: completions.
///
/// Invariant: once close() has returned, nobody is inside, and nobody enters any more.
class Door {
 public:
  explicit Door(Handling& handling) : handling_{&handling} {}

  template <typename Use>
  void enter(Use&& use) {
    Handling* handling = nullptr;
    if (!made_in_.is_here()) return;  // a child has no worker
    {
      std::lock_guard lock{mutex_};
      if (handling_ == nullptr) return;
      handling = handling_;
      ++inside_;
    }
    const Leaving leaving{*this};
    use(*handling);
  }

  void close() {
    std::unique_lock lock{mutex_};
    handling_ = nullptr;
    left_.wait(lock, [this] { return inside_ == 0; });
  }

 private:
  struct Leaving {
    explicit Leaving(Door& left) : door{left} {}
    Leaving(const Leaving&) = delete;
    Leaving& operator=(const Leaving&) = delete;
    ~Leaving() {
      std::lock_guard lock{door.mutex_};
      --door.inside_;
      door.left_.notify_all();
    }
    Door& door;
  };

  const HomeProcess made_in_;
  std::mutex mutex_;
  std::condition_variable left_;
  Handling* handling_;
  int inside_ = 0;
};

/// Calls the user's handler, at most `concurrency` calls at a time, and turns what comes of it into
/// what the ledger has to know.
///
/// Invariant: between a call's start and its end the entry is running in the ledger, so nobody
/// starts it a second time. No call starts on a lease that is older than half of `min_idle` at that
/// moment, by a clock that goes on while the machine is suspended. No exception of the handler
/// leaves.
class Handling {
 public:
  using AnyHandler = std::variant<Handler, BatchHandler>;

  /// `due` is told when something is to be done on the server, and by when.
  Handling(const Shared& shared, AnyHandler handler, std::function<void(TimePoint)> due)
      : shared_{shared},
        config_{shared.config},
        handler_{std::move(handler)},
        due_{std::move(due)},
        turnstile_{config_.concurrency} {}
  Handling(const Handling&) = delete;
  Handling& operator=(const Handling&) = delete;
  ~Handling() { close(); }

  /// From here on completions do nothing. Before what they reach goes.
  void close() { door_->close(); }

  enum class Result : std::uint8_t {
    kSucceeded,   ///< Acknowledged next.
    kFailed,      ///< To be retried, put aside, or left.
    kNotOurs,     ///< Not called: the entry is a peer's, or it or its stream is gone.
    kNotStarted,  ///< Not called, since a stop came, or it could not be alone.
    kDeferred,    ///< Somebody finishes it later.
  };

  /// How many entries a call takes.
  std::size_t entries_a_call() const noexcept;

  /// Adds what may start now, up to entries_a_call(). It is running in the ledger from then on.
  void fill(std::vector<Work>& works);

  /// For a caller that acknowledges: what succeeded goes into `done`, and `send` acknowledges at
  /// once all that waits for it.
  struct Acks {
    AckBatch& done;
    FunctionRef<void()> send;
  };

  /// Handles entries that are running in the ledger: makes sure that they are still ours where that
  /// is in doubt, and calls the handler. Throws only what `eval` and `acks` throw; then the handler
  /// was not called for those that ran still, and they are not held any more.
  std::vector<Result> handle(std::span<const Work> works, scripts::Eval eval, Acks* acks = nullptr);

  /// An entry that is running in the ledger could not be fetched: that counts as a start that
  /// failed.
  void never_arrived(const Work& work);

  /// Fires Delivery::stop of all calls.
  void give_up();

  /// From now on nothing is started, and calls that return are counted as finished after the stop.
  void drain() noexcept { draining_.store(true, std::memory_order_relaxed); }
  std::uint64_t finished_while_draining() const noexcept {
    return finished_.load(std::memory_order_relaxed);
  }

 private:
  friend class Call;
  friend class Deferred;

  /// An entry whose handler is about to be called.
  struct Attempt {
    Work work{};
    std::uint64_t number = 1;
    std::size_t index = 0;  ///< Of its result.
    std::stop_token stop{};
    bool is_gone = false;  ///< It does not start after all.
  };

  bool is_draining() const noexcept { return draining_.load(std::memory_order_relaxed); }
  bool is_last(const Work& work) const noexcept;
  std::vector<Attempt> prepare(std::span<const Work> works, std::size_t first, scripts::Eval eval,
                               std::span<Result> results);
  /// True while nobody can have taken it.
  bool is_fresh(const Work& work) const;
  /// Leaves those that are ours for sure, with their starts counted.
  void make_sure(std::vector<Attempt>& attempts, scripts::Eval eval, std::span<Result> results);
  /// Leaves those whose payload is here.
  void fetch(std::vector<Attempt>& attempts, scripts::Eval eval, std::span<Result> results);
  void ask(std::span<Attempt* const> attempts, scripts::Eval eval, std::span<Result> results);
  void call(std::span<const Attempt> attempts, std::span<Result> results, AckBatch* acks);
  /// Has all acknowledged that has succeeded so far, or loses patience.
  void acknowledge_now(Acks* acks);
  void end_alone(const Ticket& ticket, Result result, Acks* acks);

  /// What a handler said: a verdict for each entry, and the text of the exception that stands for
  /// them.
  struct Answer {
    std::vector<Verdict> verdicts{};
    std::string what{};
  };
  Answer ask(std::span<const Delivery> deliveries);

  /// When a call came to its end.
  struct Ended {
    TimePoint at{};
    std::optional<WallTime> wall{};  ///< With metrics.
  };
  /// A call comes to its end.
  Ended now() const;

  /// `verdict`: null if it is still to come.
  void tell_of(const Delivery& delivery, const Verdict* verdict, std::string_view what);
  void finish_deferred(const Attempt& attempt, const Verdict& verdict);
  Result conclude(const Attempt& attempt, const Verdict& verdict, std::string_view what,
                  const Ended& ended, AckBatch* acks);
  Result fail(const Attempt& attempt, const Verdict& verdict, std::string_view what);
  void bury(const Work& work, std::uint64_t attempts, std::string reason);
  /// `failed`: when; none where it was put off without a call.
  void try_again(const Work& work, TimePoint due, std::uint64_t attempts,
                 std::optional<WallTime> failed);
  Milliseconds backoff(std::uint64_t attempt) const;
  Delivery delivery_of(const Attempt& attempt, Call* call) const;

  const Shared& shared_;
  const WorkerConfig& config_;
  AnyHandler handler_;
  std::function<void(TimePoint)> due_;
  Turnstile turnstile_;
  std::shared_ptr<Door> door_ = std::make_shared<Door>(*this);
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> finished_{0};
};

}  // namespace millrace::detail
