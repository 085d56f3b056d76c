#pragma once

#include "worker/handling.hpp"

#include <atomic>
#include <exception>
#include <memory>
#include <string>

namespace millrace::detail {

/// A call whose end another thread decides.
class Deferred {
 public:
  Deferred(std::shared_ptr<Door> door, Handling::Attempt attempt)
      : door_{std::move(door)}, attempt_{std::move(attempt)} {}

  /// The first time; after that nothing.
  void finish(const Verdict& verdict);

 private:
  std::shared_ptr<Door> door_;
  const Handling::Attempt attempt_;
  std::atomic<bool> is_finished_{false};
};

/// A handler call from its start to its return: what a Delivery can ask of the worker.
class Call {
 public:
  Call(Handling& handling, const Handling::Attempt& attempt)
      : handling_{handling}, attempt_{attempt} {}

  bool extend(Milliseconds time);
  std::shared_ptr<Deferred> defer();

  /// Who finishes it, if the handler deferred.
  const std::shared_ptr<Deferred>& deferred() const noexcept { return deferred_; }

 private:
  Handling& handling_;
  const Handling::Attempt& attempt_;
  std::shared_ptr<Deferred> deferred_;
};

}  // namespace millrace::detail
