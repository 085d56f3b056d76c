#pragma once

#include <millrace/observer.hpp>

#include <memory>
#include <string_view>
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

  void log(Observer::LogLevel level, std::string_view line) const noexcept {
    tell([&](Observer& observer) { observer.on_log(level, line); });
  }

 private:
  std::shared_ptr<Observer> observer_;
};

}  // namespace millrace::detail
