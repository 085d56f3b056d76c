#pragma once

#include <millrace/handler.hpp>
#include <millrace/observer.hpp>

#include "core/function_ref.hpp"

#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

namespace millrace::detail {

/// Tells the observer, if there is one, and swallows what it throws. Never called with a lock held.
class Events {
 public:
  explicit Events(std::shared_ptr<Observer> observer) : observer_{std::move(observer)} {}

  template <typename Tell>
  void tell(Tell&& tell) const noexcept {
    if (!observer_) return;
    try {
      tell(*observer_);
    } catch (...) {  // NOLINT(bugprone-empty-catch): an observer that throws harms nothing
    }
  }

  /// Has the observer make a handler call, inside whatever it needs around it. The call is made
  /// once, on this thread, before this returns, whatever the observer does or throws. What `call`
  /// throws comes out of here, not of the observer.
  void around(std::span<const Delivery> deliveries, FunctionRef<void()> call) const {
    Once once{call};
    tell([&](Observer& observer) { observer.around_call(deliveries, once); });
    once();
    if (once.error()) std::rethrow_exception(once.error());
  }

  void log(Observer::LogLevel level, std::string_view line) const noexcept {
    tell([&](Observer& observer) { observer.on_log(level, line); });
  }

 private:
  class Once final : public Observer::Call {
   public:
    explicit Once(FunctionRef<void()> call) : call_{call} {}
    void operator()() override {
      // Elsewhere it would outlive what it needs.
      if (std::this_thread::get_id() != thread_ || std::exchange(made_, true)) return;
      try {
        call_();
      } catch (...) {
        error_ = std::current_exception();
      }
    }
    const std::exception_ptr& error() const noexcept { return error_; }

   private:
    FunctionRef<void()> call_;
    const std::thread::id thread_ = std::this_thread::get_id();
    bool made_ = false;
    std::exception_ptr error_{};
  };

  std::shared_ptr<Observer> observer_;
};

}  // namespace millrace::detail
