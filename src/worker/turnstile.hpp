#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace millrace::detail {

/// Lets so many at a time through, in the order in which they came. Not a semaphore, since it is
/// fair: a loop that leaves and comes back at once would starve everybody else there.
class Turnstile {
 public:
  explicit Turnstile(std::size_t at_once = 1) : at_once_{at_once} {}

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
    turn_.wait(lock, [&] { return mine < left_ + at_once_; });
  }

  void leave() {
    std::lock_guard lock{mutex_};
    ++left_;
    turn_.notify_all();
  }

  const std::size_t at_once_;
  std::mutex mutex_;
  std::condition_variable turn_;
  std::uint64_t next_ticket_ = 0;
  std::uint64_t left_ = 0;
};

}  // namespace millrace::detail
