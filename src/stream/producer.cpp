#include <millrace/producer.hpp>

#include <millrace/error.hpp>

#include "stream/producer_core.hpp"

#include <utility>

namespace millrace {

Producer::Producer(const EventStream& stream, const ProducerOptions& options)
    : core_{std::make_unique<detail::ProducerCore>(stream, options)} {}

Producer::~Producer() {
  if (core_->is_here()) return;
  // In a child after fork() there is no thread to join, and a lock that it held stays locked.
  static_cast<void>(core_.release());
}

std::future<StreamId> Producer::send(Fields fields) {
  std::promise<StreamId> promise;
  auto future = promise.get_future();
  core_->send(fields, std::move(promise));
  return future;
}

void Producer::send(Fields fields, std::function<void(const AddResult&)> done) {
  if (!done) throw InvalidArgument{"the callback of Producer::send() is empty: it has to be given"};
  core_->send(fields, std::move(done));
}

bool Producer::flush(std::chrono::milliseconds timeout) { return core_->flush(timeout); }

ProducerStats Producer::stats() const { return core_->stats(); }

}  // namespace millrace
