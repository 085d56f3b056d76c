#pragma once

#include <sys/time.h>
#include <atomic>
#include <csignal>

namespace millrace::test {

/// SIGALRM every ten milliseconds, for a handler that does nothing; system calls do not restart.
class SignalStorm {
 public:
  SignalStorm() {
    struct sigaction action {};
    action.sa_handler = [](int) { signals_.fetch_add(1); };
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval every{.it_interval = {.tv_sec = 0, .tv_usec = 10'000},
                          .it_value = {.tv_sec = 0, .tv_usec = 10'000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;
  ~SignalStorm() {
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  int signals() const { return signals_.load(); }

 private:
  static inline std::atomic<int> signals_{0};
  struct sigaction before_ {};
};

}  // namespace millrace::test
