#pragma once

#include "core/clock.hpp"

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace millrace::detail {

/// Handler calls of this process, whatever their worker. The last start that an entry may have is
/// made with nothing else running, until it is acknowledged: if it ends the process, no neighbour's
/// count has gone up with it, and no neighbour can end the process before its success is known.
/// Who finishes it later, by a Completion, is waited for, but for kPatience at most.
///
/// Invariant: while somebody is alone, nobody else is inside. While somebody waits to be alone,
/// nobody enters; but who comes meanwhile enters as soon as one such wait has been in vain, so
/// after kPatience at most, and a handler that waits for another one cannot hang here.
class Company {
 public:
  /// Inside from here to its end. A call inside a call (a handler that reaps for another worker)
  /// does not wait, and is never alone.
  class Pass {
   public:
    enum class Wish : bool { kAny, kAlone };
    Pass(Company& company, Wish wish);
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass();

    /// False: it was to be alone, and others did not end in time.
    bool is_inside() const noexcept { return is_inside_; }

   private:
    Company& company_;
    const bool is_nested_;
    const bool is_inside_;
    const Wish wish_;
  };

  explicit Company(Milliseconds patience = kPatience) : patience_{patience} {}

  /// Of this process.
  static Company& of_process();

  static constexpr Milliseconds kPatience{1'000};

 private:
  bool enter(Pass::Wish wish);
  void leave(Pass::Wish wish);

  const Milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t inside_ = 0;
  std::size_t want_to_be_alone_ = 0;
  std::size_t waits_in_vain_ = 0;
  bool alone_ = false;
};

}  // namespace millrace::detail
