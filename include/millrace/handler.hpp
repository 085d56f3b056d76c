#pragma once

#include <millrace/entry.hpp>
#include <millrace/error.hpp>
#include <millrace/export.hpp>

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {

namespace detail {
class Call;
class Deferred;
}  // namespace detail

/// What a handler says of an entry. A handler that returns nothing says ack().
class [[nodiscard]] Verdict {
 public:
  /// Done: acknowledge it.
  static Verdict ack() noexcept { return Verdict{Kind::kAck}; }
  /// It failed: try again after WorkerOptions::retry_backoff, which doubles with each attempt. An
  /// exception that leaves the handler means the same. The last of `max_deliveries` attempts makes
  /// it a dead letter.
  static Verdict retry() noexcept { return Verdict{Kind::kRetry}; }
  /// It failed: try again after `delay`, which is not negative. Counts as retry() does.
  static Verdict retry_after(std::chrono::milliseconds delay) {
    if (delay.count() < 0) throw InvalidArgument{"retry_after: the delay must not be negative"};
    Verdict verdict{Kind::kRetryAfter};
    verdict.delay_ = delay;
    return verdict;
  }
  /// It can never succeed: put it aside now, with this reason. A PermanentError means the same.
  static Verdict dead_letter(std::string reason) {
    Verdict verdict{Kind::kDeadLetter};
    verdict.reason_ = std::move(reason);
    return verdict;
  }
  /// Not by us, and no failure: it stays pending, and comes back, here or at a peer, when it has
  /// been idle for `min_idle`.
  static Verdict leave_pending() noexcept { return Verdict{Kind::kLeavePending}; }

  enum class Kind : std::uint8_t { kAck, kRetry, kRetryAfter, kDeadLetter, kLeavePending };
  Kind kind() const noexcept { return kind_; }
  std::chrono::milliseconds delay() const noexcept { return delay_; }  ///< Of retry_after().
  const std::string& reason() const noexcept { return reason_; }       ///< Of dead_letter().

  friend bool operator==(const Verdict&, const Verdict&) = default;

 private:
  explicit Verdict(Kind kind) noexcept : kind_{kind} {}
  Kind kind_;
  std::chrono::milliseconds delay_{0};
  std::string reason_{};
};

/// Thrown by a handler: the entry can never succeed, it becomes a dead letter at once.
struct PermanentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The end of a handler call that another thread decides: see Delivery::defer(). Move-only. The
/// first of its calls counts; its destructor means retry(). After the worker is gone it does
/// nothing. Safe from any thread, one at a time.
class MILLRACE_EXPORT Completion {
 public:
  Completion() noexcept;
  Completion(Completion&& other) noexcept;
  Completion& operator=(Completion&& other) noexcept;
  ~Completion();

  void ack() { finish(Verdict::ack()); }
  void retry() { finish(Verdict::retry()); }
  void dead_letter(std::string reason) { finish(Verdict::dead_letter(std::move(reason))); }

  /// Any verdict.
  void finish(const Verdict& verdict);

 private:
  friend struct Delivery;
  explicit Completion(std::shared_ptr<detail::Deferred> deferred) noexcept;
  std::shared_ptr<detail::Deferred> deferred_;
};

/// One entry, handed to a handler.
///
/// Copyable, but its entry and strings are views: they live until the handler returns, and where it
/// deferred, until the Completion is finished. Keep `entry.to_owned()` for longer.
struct Delivery {
  Entry entry{};
  std::uint64_t attempt = 1;  ///< Starts of the handler for this entry, this one included.
  bool reclaimed = false;     ///< It was pending before: after a retry, a crash or a lost reply.
  /// Fires when the handler should give up: its lease is lost, so that a peer may have the entry;
  /// `max_handler_time` has passed; or the deadline of ConsumerWorker::stop has. What is registered
  /// for it (std::stop_callback) may run on the thread that renews leases: it is to be short.
  std::stop_token stop{};
  std::string_view stream{}, group{}, consumer{};
  detail::Call* call = nullptr;  ///< The worker's own; gone when the handler returns.

  /// For the handler, while it runs: gives it `time` from now on, where `max_handler_time` would
  /// end it before; it never shortens a call. False: the lease is lost, or there is no worker (in a
  /// test of a handler).
  MILLRACE_EXPORT bool extend(std::chrono::milliseconds time) const;

  /// For the handler, while it runs: lets another thread finish this call, later. What the handler
  /// returns is not looked at. The entry stays held and leased. Once a call; without a worker, or
  /// the second time, what it returns does nothing.
  MILLRACE_EXPORT Completion defer() const;
};

namespace detail {

/// A callable behind one virtual call.
template <typename Signature>
class AnyCallable;

template <typename R, typename Argument>
class AnyCallable<R(Argument)> {
 public:
  virtual ~AnyCallable() = default;
  virtual R call(Argument argument) = 0;
};

template <typename F, typename R, typename Argument, typename Adapt>
class CallableModel final : public AnyCallable<R(Argument)> {
 public:
  template <typename G>
  explicit CallableModel(G&& callable) : function_{std::forward<G>(callable)} {}
  R call(Argument argument) override { return Adapt{}(function_, argument); }

 private:
  F function_;
};

template <typename F>
void refuse_empty_handler(const F& callable) {
  using Plain = std::remove_reference_t<F>;
  if constexpr (requires { callable == nullptr; } && !std::is_function_v<Plain>) {
    if (callable == nullptr) throw InvalidArgument{"the handler is an empty function"};
  }
}

template <typename F, typename Argument, typename... Results>
concept ReturnsOneOf = std::invocable < std::decay_t<F>
&, Argument > &&(std::same_as<std::invoke_result_t<std::decay_t<F>&, Argument>, Results> || ...);

}  // namespace detail

/// What a ConsumerWorker calls for each entry: any callable on `const Delivery&` that returns
/// exactly Verdict, or nothing (then a return acknowledges). Anything else does not compile, so a
/// forgotten `co_await`, or a bool that means the opposite, cannot pass for success. Move-only.
/// With a `concurrency` of more than 1 it is called from several threads at once.
///
/// Throws InvalidArgument for an empty std::function or a null pointer.
class Handler {
 public:
  template <typename F>
  requires(!std::same_as<std::remove_cvref_t<F>, Handler> &&
           detail::ReturnsOneOf<F, const Delivery&, Verdict, void>)
      Handler(
          F&& callable) {  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
    detail::refuse_empty_handler(callable);
    using Model = detail::CallableModel<std::decay_t<F>, Verdict, const Delivery&, Adapt>;
    callable_ = std::make_unique<Model>(std::forward<F>(callable));
  }

  Verdict operator()(const Delivery& delivery) { return callable_->call(delivery); }

 private:
  struct Adapt {
    template <typename F>
    Verdict operator()(F& function, const Delivery& delivery) const {
      if constexpr (std::is_void_v<std::invoke_result_t<F&, const Delivery&>>) {
        std::invoke(function, delivery);
        return Verdict::ack();
      } else {
        return std::invoke(function, delivery);
      }
    }
  };

  std::unique_ptr<detail::AnyCallable<Verdict(const Delivery&)>> callable_;
};

/// What a ConsumerWorker calls for several entries at once: a callable on
/// `std::span<const Delivery>` that returns one Verdict for all of them, or a
/// `std::vector<Verdict>` with one for each, in order. Another number of verdicts, and an
/// exception, mean retry() for all. Wrap it by name, since a generic lambda fits Handler as well:
/// `BatchHandler{[](std::span<const Delivery> batch) { … }}`.
class BatchHandler {
 public:
  template <typename F>
  requires(!std::same_as<std::remove_cvref_t<F>, BatchHandler> &&
           detail::ReturnsOneOf<F, std::span<const Delivery>, Verdict, std::vector<Verdict>>)
      BatchHandler(
          F&& callable) {  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
    detail::refuse_empty_handler(callable);
    using Model = detail::CallableModel<std::decay_t<F>, std::vector<Verdict>,
                                        std::span<const Delivery>, Adapt>;
    callable_ = std::make_unique<Model>(std::forward<F>(callable));
  }

  std::vector<Verdict> operator()(std::span<const Delivery> batch) {
    return callable_->call(batch);
  }

 private:
  struct Adapt {
    template <typename F>
    std::vector<Verdict> operator()(F& function, std::span<const Delivery> batch) const {
      if constexpr (std::same_as<std::invoke_result_t<F&, std::span<const Delivery>>, Verdict>) {
        return std::vector<Verdict>(batch.size(), std::invoke(function, batch));
      } else {
        return std::invoke(function, batch);
      }
    }
  };

  std::unique_ptr<detail::AnyCallable<std::vector<Verdict>(std::span<const Delivery>)>> callable_;
};

}  // namespace millrace
