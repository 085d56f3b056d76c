#include <millrace/worker_group.hpp>

#include "core/clock.hpp"
#include "net/deadline.hpp"
#include "worker/inside.hpp"
#include "worker/overall.hpp"
#include "worker/worker.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace millrace {
namespace {

using detail::Milliseconds;

constexpr std::size_t kMostWorkers = 1'000;

/// One handler for many workers.
auto shared_by_all(Handler handler) {
  return [shared = std::make_shared<Handler>(std::move(handler))] {
    return Handler{[shared](const Delivery& delivery) { return (*shared)(delivery); }};
  };
}

auto shared_by_all(BatchHandler handler) {
  return [shared = std::make_shared<BatchHandler>(std::move(handler))] {
    return BatchHandler{[shared](std::span<const Delivery> batch) { return (*shared)(batch); }};
  };
}

template <typename AnyHandler>
const std::function<AnyHandler()>& not_empty(const std::function<AnyHandler()>& make) {
  if (!make) throw InvalidArgument{"the function that makes handlers is empty"};
  return make;
}

/// What is left of a drain that ends then.
class CommonDeadline {
 public:
  explicit CommonDeadline(Milliseconds span)
      : deadline_{detail::after(detail::Clock::system().now(), span)} {}
  Milliseconds left() const { return detail::left_until(deadline_, detail::Clock::system().now()); }

 private:
  const detail::TimePoint deadline_;
};

void append(std::vector<StreamId>& all, const std::vector<StreamId>& some) {
  all.insert(all.end(), some.begin(), some.end());
}

}  // namespace

template <typename Make>
void WorkerGroup::add_workers(const EventStream& stream, const WorkerOptions& options,
                              std::size_t workers, Make&& make) {
  if (workers < 1 || workers > kMostWorkers) {
    throw InvalidArgument{
        fmt::format("WorkerGroup: workers is {}: it must be from 1 to {}", workers, kMostWorkers)};
  }
  workers_.reserve(workers);
  WorkerOptions its_options = options;
  for (std::size_t number = 1; number <= workers; ++number) {
    if (!options.consumer.empty()) {
      its_options.consumer = fmt::format("{}-{}", options.consumer, number);
    }
    workers_.push_back(std::make_unique<ConsumerWorker>(stream, its_options, make()));
  }
}

WorkerGroup::WorkerGroup(const EventStream& stream, const WorkerOptions& options,
                         std::size_t workers, Handler handler) {
  add_workers(stream, options, workers, shared_by_all(std::move(handler)));
}

WorkerGroup::WorkerGroup(const EventStream& stream, const WorkerOptions& options,
                         std::size_t workers, BatchHandler handler) {
  add_workers(stream, options, workers, shared_by_all(std::move(handler)));
}

WorkerGroup::WorkerGroup(const EventStream& stream, const WorkerOptions& options,
                         std::size_t workers, const std::function<Handler()>& make) {
  add_workers(stream, options, workers, not_empty(make));
}

WorkerGroup::WorkerGroup(const EventStream& stream, const WorkerOptions& options,
                         std::size_t workers, const std::function<BatchHandler()>& make) {
  add_workers(stream, options, workers, not_empty(make));
}

WorkerGroup::~WorkerGroup() { request_stop(); }

void WorkerGroup::start() {
  workers_.front()->worker_->check_process();
  if (started_.exchange(true)) throw InvalidArgument{"a WorkerGroup starts once"};
  try {
    for (const auto& worker : workers_) worker->start();
  } catch (...) {
    stop();
    throw;
  }
}

StopReport WorkerGroup::stop(Milliseconds drain) {
  refuse_inside("stop");  // before anything is stopped
  const CommonDeadline deadline{drain};
  request_stop();
  StopReport report;
  for (const auto& worker : workers_) {
    // Those after it go on ending in the meantime.
    const StopReport one = worker->stop(deadline.left());
    report.finished += one.finished;
    append(report.released, one.released);
    append(report.abandoned, one.abandoned);
  }
  std::sort(report.released.begin(), report.released.end());
  std::sort(report.abandoned.begin(), report.abandoned.end());
  return report;
}

void WorkerGroup::request_stop() noexcept {
  for (const auto& worker : workers_) worker->request_stop();
}

void WorkerGroup::pause() {
  for (const auto& worker : workers_) worker->pause();
}

void WorkerGroup::resume() {
  for (const auto& worker : workers_) worker->resume();
}

ReapReport WorkerGroup::reap_idle_pending() {
  refuse_inside("reap_idle_pending");
  const auto lives = std::find_if(workers_.begin(), workers_.end(), [](const auto& worker) {
    return !detail::has_ended(worker->state());
  });
  // One that has ended says so itself.
  return (lives == workers_.end() ? workers_.front() : *lives)->reap_idle_pending();
}

bool WorkerGroup::wait_ready(Milliseconds timeout) {
  const CommonDeadline deadline{timeout};
  return std::all_of(workers_.begin(), workers_.end(),
                     [&](const auto& worker) { return worker->wait_ready(deadline.left()); });
}

WorkerState WorkerGroup::state() const {
  std::vector<WorkerState> states;
  states.reserve(workers_.size());
  for (const auto& worker : workers_) states.push_back(worker->state());
  return detail::overall_state(states);
}

std::optional<Error> WorkerGroup::failure() const {
  for (const auto& worker : workers_) {
    if (auto failure = worker->failure()) return failure;
  }
  return std::nullopt;
}

WorkerStats WorkerGroup::stats() const {
  WorkerStats sum;
  for (const auto& worker : workers_) detail::add(sum, worker->stats());
  sum.state = state();
  return sum;
}

void WorkerGroup::refuse_inside(const char* call) const {
  for (const auto& worker : workers_) worker->worker_->refuse_inside(call);
}

}  // namespace millrace
