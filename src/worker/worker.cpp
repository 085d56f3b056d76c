#include "worker/worker.hpp"

#include "net/deadline.hpp"
#include "worker/acknowledging.hpp"
#include "worker/inside.hpp"
#include "worker/intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace millrace::detail {
namespace {

constexpr Milliseconds kSayWaitingEvery{60'000};

bool has_ended(WorkerState state) {
  return state == WorkerState::kStopped || state == WorkerState::kFailed;
}

}  // namespace

Worker::Worker(const EventStream& stream, const WorkerOptions& options, Handler handler)
    : stream_{stream},
      config_{resolve(options, stream_)},
      events_{options.observer},
      shared_{.config = config_,
              .pool = Pool::of(stream_.pool()),
              .ledger = ledger_,
              .counters = counters_,
              .events = events_,
              .status = status_,
              .group = group_,
              .gate = gate_,
              .clock = clock_},
      handling_{config_, std::move(handler), ledger_, counters_, events_, clock_},
      reader_{shared_, handling_, [this](TimePoint due) { keeper_.wake(due); }},
      reap_page_size_{std::min(config_.prefetch, scripts::kMostIds)} {}

Worker::~Worker() {
  request_stop();
  while (!wait_until_ended(after(clock_.now(), kSayWaitingEvery))) {
    events_.log(Observer::LogLevel::kWarning,
                fmt::format("still waiting for {} handler calls of '{}' to return",
                            ledger_.running().size(), config_.consumer));
  }
  join();
}

void Worker::start() {
  const Inside inside{*this};
  {
    std::lock_guard lock{lifecycle_};
    if (started_ || stop_.stop_requested()) {
      throw InvalidArgument{"a ConsumerWorker starts once, and not after it was stopped"};
    }
    started_ = true;
  }
  status_.move_to(WorkerState::kStarting);
  try {
    start_threads();
  } catch (const std::exception& error) {
    status_.fail(ProtocolError{fmt::format("the worker could not start: {}", error.what())});
    throw;
  }
}

void Worker::start_threads() {
  std::lock_guard lock{lifecycle_};
  try {
    keeping_ = std::thread{[this] { keep_until_read(); }};
  } catch (...) {
    ended_ = true;  // or everybody would wait for a thread that there is not
    ended_changed_.notify_all();
    throw;
  }
  try {
    reading_ = std::thread{[this] { read_until_stopped(); }};
  } catch (...) {
    stop_.request_stop();
    keeper_.reader_ended(false);
    throw;
  }
}

void Worker::read_until_stopped() {
  const Inside inside{*this};
  try {
    reader_.run(stop_.get_token());
  } catch (const std::exception& error) {
    status_.fail(ProtocolError{fmt::format("the worker ended: {}", error.what())});
  }
  // The keeper's end is the consumer's: what a reap left unacknowledged comes before it.
  const bool reaped = await_reaping();
  keeper_.reader_ended(reader_.was_connected() || reaped);
}

bool Worker::await_reaping() {
  std::unique_lock lock{lifecycle_};
  ended_changed_.wait(lock, [this] { return reaping_ == 0; });
  return reaped_;
}

void Worker::keep_until_read() {
  const Inside inside{*this};
  try {
    keeper_.run(stop_.get_token());
  } catch (const std::exception& error) {
    status_.fail(ProtocolError{fmt::format("the worker ended: {}", error.what())});
    stop_.request_stop();
    reader_.interrupt();
    reading_.join();
  }
  status_.move_to(WorkerState::kStopped);
  std::lock_guard lock{lifecycle_};
  ended_ = true;
  ended_changed_.notify_all();
}

void Worker::request_stop() noexcept {
  handling_.drain();
  status_.move_to(WorkerState::kDraining);
  stop_.request_stop();
}

StopReport Worker::stop(Milliseconds drain) {
  refuse_inside("stop");
  request_stop();
  StopReport report;
  if (wait_until_ended(after(clock_.now(), drain))) {
    join();
    report.released = reader_.released();
    std::lock_guard lock{lifecycle_};
    report.released.insert(report.released.end(), released_by_reaping_.begin(),
                           released_by_reaping_.end());
  } else {
    handling_.give_up();
    report.abandoned = ledger_.running();
  }
  report.finished = handling_.finished_while_draining();
  return report;
}

bool Worker::wait_until_ended(TimePoint deadline) {
  std::unique_lock lock{lifecycle_};
  const bool may_end = ended_changed_.wait_until(
      lock, deadline, [this] { return (ended_ || (!started_ && !ending_)) && reaping_ == 0; });
  if (!may_end || ended_) return may_end;
  ending_ = true;
  const bool reaped = reaped_;
  lock.unlock();
  end_without_threads(reaped);
  lock.lock();
  ended_ = true;
  ended_changed_.notify_all();
  return true;
}

void Worker::end_without_threads(bool reaped) {
  const Inside inside{*this};
  // What a keeper does when all others have come to their end.
  keeper_.reader_ended(reaped);
  keeper_.run(stop_.get_token());
  status_.move_to(WorkerState::kStopped);
}

void Worker::join() {
  std::thread reading;
  std::thread keeping;
  {
    std::lock_guard lock{lifecycle_};
    reading.swap(reading_);
    keeping.swap(keeping_);
  }
  if (reading.joinable()) reading.join();
  if (keeping.joinable()) keeping.join();
}

void Worker::pause() { reader_.set_paused(true); }

void Worker::resume() { reader_.set_paused(false); }

bool Worker::wait_ready(Milliseconds timeout) const {
  const bool settled = status_.wait_for(
      [](WorkerState state) { return state == WorkerState::kRunning || has_ended(state); },
      after(clock_.now(), timeout));
  return settled && !has_ended(status_.state());
}

Worker::Reaping::Reaping(Worker& worker) : worker_{worker} {
  std::lock_guard lock{worker.lifecycle_};
  if (worker.stop_.stop_requested() || has_ended(worker.status_.state())) {
    throw InvalidArgument{"reap_idle_pending() was called after the worker was stopped"};
  }
  ++worker.reaping_;
}

Worker::Reaping::~Reaping() {
  std::lock_guard lock{worker_.lifecycle_};
  --worker_.reaping_;
  worker_.ended_changed_.notify_all();
}

ReapReport Worker::reap() {
  refuse_inside("reap_idle_pending");
  const Reaping reaping{*this};
  const Inside inside{*this};
  ReapReport report;
  StreamId cursor{};
  try {
    do {
      reap_page(report, cursor);
    } while (cursor != StreamId{} && !stop_.stop_requested());
  } catch (const Error& error) {
    report.error = error;
  }
  return report;
}

void Worker::reap_page(ReapReport& report, StreamId& cursor) {
  const auto run = [this](auto&&... args) { return shared_.pool.eval(args...); };
  // Acknowledgements that failed in an earlier page: without start() nobody else sends them.
  Acknowledging{shared_, kMostAcks}.send(
      [this](auto&&... args) { return shared_.pool.pipeline(args...); });
  const TimePoint sent_at = clock_.now();
  const auto taken = take_page(cursor);
  cursor = taken.next_cursor;
  report.deleted_ids.insert(report.deleted_ids.end(), taken.deleted_ids.begin(),
                            taken.deleted_ids.end());
  const auto batch = hold_taken(shared_, taken, sent_at);
  report.claimed += batch.size();

  AckBatch done;
  auto work = batch.begin();
  try {
    for (; work != batch.end(); ++work) {
      const auto result = handling_.handle(*work, run);
      if (result == Handling::Result::kNotStarted) break;
      if (result == Handling::Result::kSucceeded) ledger_.finish_into(done, work->ticket);
    }
  } catch (...) {
    ledger_.settle(done, false);
    keeper_.wake(clock_.now());
    let_go(shared_, {work + 1, batch.end()});
    throw;
  }
  // Whichever of the two fails, the ledger hears of the other's entries.
  Acknowledging acks{shared_, std::move(done)};
  give_back(let_go(shared_, {work, batch.end()}));
  acks.send([this](auto&&... args) { return shared_.pool.pipeline(args...); });
  report.processed += acks.acknowledged();
}

scripts::Taken Worker::take_page(StreamId cursor) {
  const auto run = [this](auto&&... args) { return shared_.pool.eval(args...); };
  try {
    auto taken =
        scripts::take(run, handling_.consumer(), config_.min_idle, cursor, reap_page_size_.get());
    note_reaped();
    reap_page_size_.arrived();
    return taken;
  } catch (const Error& error) {
    if (error.outcome() != Outcome::kNotApplied) note_reaped();
    if (error.code() == Error::Code::kTimeout) reap_page_size_.timed_out();
    throw;
  }
}

void Worker::note_reaped() {
  std::lock_guard lock{lifecycle_};
  reaped_ = true;
}

void Worker::give_back(const std::vector<scripts::Hold>& unstarted) {
  const auto run = [this](auto&&... args) { return shared_.pool.eval(args...); };
  const auto released = scripts::release(run, handling_.consumer(), config_.min_idle, unstarted);
  count(counters_.released, released.size());
  std::lock_guard lock{lifecycle_};
  released_by_reaping_.insert(released_by_reaping_.end(), released.begin(), released.end());
}

void Worker::refuse_inside(const char* call) const {
  if (!Inside::of(*this)) return;
  throw InvalidArgument{
      fmt::format("{}() was called from the worker's own handler or observer, where it would "
                  "wait for itself; request_stop() does not wait",
                  call)};
}

}  // namespace millrace::detail
