#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace millrace::detail {

/// Lets one at a time through, in the order in which they came. Not a mutex, since what happens
/// inside is a user's callback, which must never find a lock held; and fair, since a loop that
/// leaves and comes back at once would starve everybody else at a mutex.
class Turnstile {
 public:
  class Pass {
   public:
    explicit Pass(Turnstile& turnstile) : turnstile_{turnstile} { turnstile_.enter(); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() { turnstile_.leave(); }

   private:
    Turnstile& turnstile_;
  };

 private:
  void enter() {
    std::unique_lock lock{mutex_};
    const std::uint64_t mine = next_ticket_++;
    turn_.wait(lock, [&] { return serving_ == mine; });
  }

  void leave() {
    std::lock_guard lock{mutex_};
    ++serving_;
    turn_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t serving_ = 0;
};

}  // namespace millrace::detail
