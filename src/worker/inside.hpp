#pragma once

namespace millrace::detail {

class Worker;

/// Marks the thread it lives on as at work for a worker: whoever waits there for the worker's end
/// waits for itself. A handler may call another worker's reap_idle_pending(), so there can be one
/// inside another.
class Inside {
 public:
  explicit Inside(const Worker& worker) noexcept;
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside();

  /// True on a thread that is at work for this worker.
  static bool of(const Worker& worker) noexcept;

 private:
  const Worker& worker_;
  const Inside* const outer_;
};

}  // namespace millrace::detail
