#pragma once

#include <fmt/core.h>

#include <csignal>
#include <ctime>
#include <stdexcept>

namespace pipeline {

/// Turns Ctrl-C and its kin into an exception while this object lives, so that what was started is
/// ended, and what was made is removed. Make it before there are threads.
class Interruption {
 public:
  Interruption() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    sigprocmask(SIG_BLOCK, &signals_, &before_);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

  /// Throws if a signal has come.
  void check() const {
    const timespec no_time{};
    if (const int signal = sigtimedwait(&signals_, nullptr, &no_time); signal > 0) {
      throw std::runtime_error{fmt::format("ended by signal {}", signal)};
    }
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

}  // namespace pipeline
