#include <millrace/consumer_worker.hpp>

#include "worker/worker.hpp"

#include <memory>
#include <utility>

namespace millrace {
namespace {

detail::Worker& usable(const std::unique_ptr<detail::Worker>& worker) {
  worker->check_process();
  return *worker;
}

}  // namespace

ConsumerWorker::ConsumerWorker(const EventStream& stream, const WorkerOptions& options,
                               Handler handler)
    : worker_{std::make_unique<detail::Worker>(stream, options, std::move(handler))} {}

ConsumerWorker::ConsumerWorker(const EventStream& stream, const WorkerOptions& options,
                               BatchHandler handler)
    : worker_{std::make_unique<detail::Worker>(stream, options, std::move(handler))} {}

ConsumerWorker::~ConsumerWorker() {
  if (!worker_->is_here()) detail::Worker::leave_behind(std::move(worker_));
}

void ConsumerWorker::start() { usable(worker_).start(); }

StopReport ConsumerWorker::stop(std::chrono::milliseconds drain) {
  return usable(worker_).stop(drain);
}

void ConsumerWorker::request_stop() noexcept {
  if (worker_->is_here()) worker_->request_stop();
}

void ConsumerWorker::pause() { usable(worker_).pause(); }

void ConsumerWorker::resume() { usable(worker_).resume(); }

ReapReport ConsumerWorker::reap_idle_pending() { return usable(worker_).reap(); }

bool ConsumerWorker::wait_ready(std::chrono::milliseconds timeout) {
  return usable(worker_).wait_ready(timeout);
}

WorkerState ConsumerWorker::state() const { return usable(worker_).state(); }

std::optional<Error> ConsumerWorker::failure() const { return usable(worker_).failure(); }

bool ConsumerWorker::is_ready() const { return usable(worker_).is_ready(); }

bool ConsumerWorker::is_alive(std::chrono::milliseconds within) const {
  return usable(worker_).is_alive(within);
}

WorkerStats ConsumerWorker::stats() const { return usable(worker_).stats(); }

const std::string& ConsumerWorker::consumer() const noexcept { return worker_->consumer(); }

}  // namespace millrace
