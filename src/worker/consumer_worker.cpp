#include <millrace/consumer_worker.hpp>

#include "worker/worker.hpp"

#include <utility>

namespace millrace {

ConsumerWorker::ConsumerWorker(const EventStream& stream, const WorkerOptions& options,
                               Handler handler)
    : worker_{std::make_unique<detail::Worker>(stream, options, std::move(handler))} {}

ConsumerWorker::ConsumerWorker(const EventStream& stream, const WorkerOptions& options,
                               BatchHandler handler)
    : worker_{std::make_unique<detail::Worker>(stream, options, std::move(handler))} {}

ConsumerWorker::~ConsumerWorker() = default;

void ConsumerWorker::start() { worker_->start(); }

StopReport ConsumerWorker::stop(std::chrono::milliseconds drain) { return worker_->stop(drain); }

void ConsumerWorker::request_stop() noexcept { worker_->request_stop(); }

void ConsumerWorker::pause() { worker_->pause(); }

void ConsumerWorker::resume() { worker_->resume(); }

ReapReport ConsumerWorker::reap_idle_pending() { return worker_->reap(); }

bool ConsumerWorker::wait_ready(std::chrono::milliseconds timeout) {
  return worker_->wait_ready(timeout);
}

WorkerState ConsumerWorker::state() const { return worker_->state(); }

std::optional<Error> ConsumerWorker::failure() const { return worker_->failure(); }

bool ConsumerWorker::is_ready() const { return worker_->is_ready(); }

bool ConsumerWorker::is_alive(std::chrono::milliseconds within) const {
  return worker_->is_alive(within);
}

WorkerStats ConsumerWorker::stats() const { return worker_->stats(); }

const std::string& ConsumerWorker::consumer() const noexcept { return worker_->consumer(); }

}  // namespace millrace
