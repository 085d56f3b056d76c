#pragma once

#include <millrace/event_stream.hpp>

#include "workload.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <thread>
#include <vector>

namespace chaos {

/// Appends all entries of a Workload, spread evenly over a time, on a thread of its own. What was
/// not appended for sure is appended again: then it may be there twice, which are two entries.
class Producer {
 public:
  Producer(millrace::EventStream stream, const Workload& workload,
           std::chrono::milliseconds duration);
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  ~Producer();

  bool is_done() const noexcept { return done_.load(); }

  /// Ids that the server has given, once it is done.
  const std::vector<millrace::StreamId>& appended() const noexcept { return appended_; }
  /// Appends of which nobody knows whether they were made.
  std::uint64_t unknown() const noexcept { return unknown_.load(); }

 private:
  void run(const std::stop_token& stop);
  std::uint64_t due() const;
  void append(std::vector<std::uint64_t>& numbers);

  const millrace::EventStream stream_;
  const Workload& workload_;
  const std::chrono::milliseconds duration_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<millrace::StreamId> appended_{};
  std::atomic<std::uint64_t> unknown_{0};
  std::atomic<bool> done_{false};
  std::jthread thread_;
};

}  // namespace chaos
