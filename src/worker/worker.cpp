#include "worker/worker.hpp"

#include "core/waiting.hpp"
#include "net/deadline.hpp"
#include "worker/acknowledging.hpp"
#include "worker/inside.hpp"
#include "worker/intake.hpp"
#include "worker/liveness.hpp"
#include "worker/overall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace millrace::detail {
namespace {

constexpr Milliseconds kSayWaitingEvery{60'000};

}  // namespace

Worker::Worker(const EventStream& stream, const WorkerOptions& options,
               Handling::AnyHandler handler, const Clock& clock)
    : stream_{stream},
      config_{resolve(options, stream_)},
      clock_{clock},
      events_{options.observer},
      shared_{.config = config_,
              .pool = Pool::of(stream_.pool()),
              .ledger = ledger_,
              .counters = counters_,
              .events = events_,
              .status = status_,
              .group = group_,
              .gate = gate_,
              .company = Company::of_process(),
              .clock = clock_},
      handling_{shared_, std::move(handler), [this](TimePoint due) { keeper_.wake(due); }},
      reader_{shared_, handling_, [this](TimePoint due) { keeper_.wake(due); },
              [this](const Error& error) { fail(error); }},
      keeper_{shared_,
              {.recover = [this] { reader_.recover_soon(); },
               .hang_up = [this] { reader_.hang_up(); },
               .interrupt = [this] { reader_.interrupt(); },
               .fail = [this](const Error& error) { fail(error); }}} {}

Worker::~Worker() {
  request_stop();
  keeper_.abandon();
  while (!wait_until_ended(after(clock_.now(), kSayWaitingEvery))) {
    events_.log(Observer::LogLevel::kWarning,
                fmt::format("still waiting for {} handler calls of '{}' to return",
                            ledger_.running().size(), config_.consumer));
  }
  join();
  handling_.close();  // before the keeper goes, which completions wake
}

void Worker::check_process() const {
  made_in_.check("this worker", "make another one, with a ConnectionPool of its own, in the child");
}

void Worker::leave_behind(std::unique_ptr<Worker> worker) {
  // Its threads would be waited for, and so would those that wait for its conditions. Reachable, it
  // is no leak.
  static std::mutex mutex;
  static auto& left_behind = *new std::vector<std::unique_ptr<Worker>>;
  std::lock_guard lock{mutex};
  left_behind.push_back(std::move(worker));
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
  const std::size_t handlers = config_.concurrency > 1 ? config_.concurrency : 0;
  try {
    threads_.reserve(2 + handlers);
    threads_.emplace_back([this] { keep_until_done(); });
  } catch (...) {
    ended_ = true;  // or everybody would wait for a thread that there is not
    ended_changed_.notify_all();
    throw;
  }
  working_ = 1;  // or the first to end would find itself the last
  try {
    threads_.emplace_back([this] { read_until_stopped(); });
    ++working_;
    for (std::size_t i = 0; i < handlers; ++i) {
      threads_.emplace_back([this] { handle_until_stopped(); });
      ++working_;
    }
  } catch (...) {
    stop_.request_stop();
    if (--working_ == 0) keeper_.work_ended(false);
    throw;
  }
  --working_;
}

void Worker::read_until_stopped() {
  const Inside inside{*this};
  try {
    reader_.run(stop_.get_token());
  } catch (const std::exception& error) {
    status_.fail(ProtocolError{fmt::format("the worker ended: {}", error.what())});
  }
  stop_.request_stop();  // it may have ended by itself
  thread_ended();
}

void Worker::handle_until_stopped() {
  const Inside inside{*this};
  const auto run = [this](auto&&... args) { return shared_.pool.eval(args...); };
  std::vector<Work> works;
  FaultLog faults;
  const auto note = [&](const Error& error) {
    // What was not started comes back by recovery.
    reader_.recover_soon();
    if (const auto line = faults.report(error, clock_.now())) {
      events_.log(Observer::LogLevel::kWarning, *line);
    }
  };
  for (;;) {
    try {
      works.clear();
      auto first = ledger_.wait_for_next(stop_.get_token(), clock_);
      if (!first) break;
      works.push_back(std::move(*first));
      handling_.fill(works);
      handling_.handle(works, run);
    } catch (const Error& error) {
      note(error);
    } catch (const std::exception& error) {
      note(ProtocolError{error.what()});
    }
  }
  thread_ended();
}

void Worker::thread_ended() {
  std::unique_lock lock{lifecycle_};
  if (--working_ > 0) return;
  // The keeper's end is the consumer's: what a reap left unacknowledged comes before it.
  ended_changed_.wait(lock, [this] { return reaping_ == 0; });
  const bool reaped = reaped_;
  lock.unlock();
  keeper_.work_ended(reader_.was_connected() || reaped);
}

void Worker::keep_until_done() {
  const Inside inside{*this};
  try {
    keeper_.run(stop_.get_token());
  } catch (const std::exception& error) {
    fail(ProtocolError{fmt::format("the worker ended: {}", error.what())});
    reader_.interrupt();
    std::unique_lock lock{lifecycle_};
    ended_changed_.wait(lock, [this] { return working_ == 0; });
  }
  status_.move_to(WorkerState::kStopped);
  std::lock_guard lock{lifecycle_};
  ended_ = true;
  ended_changed_.notify_all();
}

void Worker::fail(const Error& error) {
  if (status_.fail(error)) events_.log(Observer::LogLevel::kError, error.what());
  handling_.drain();
  handling_.give_up();
  stop_.request_stop();
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
    report.released = keeper_.released();
    std::lock_guard lock{lifecycle_};
    report.released.insert(report.released.end(), released_by_reaping_.begin(),
                           released_by_reaping_.end());
  } else {
    handling_.give_up();
  }
  report.abandoned = ledger_.running();
  report.finished = handling_.finished_while_draining();
  return report;
}

bool Worker::wait_until_ended(TimePoint deadline) {
  std::unique_lock lock{lifecycle_};
  const bool may_end = wait_by_clock(ended_changed_, lock, deadline, clock_, [this] {
    return (ended_ || (!started_ && !ending_)) && reaping_ == 0;
  });
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
  keeper_.abandon();
  keeper_.work_ended(reaped);
  keeper_.run(stop_.get_token());
  status_.move_to(WorkerState::kStopped);
}

void Worker::join() {
  std::vector<std::thread> threads;
  {
    std::lock_guard lock{lifecycle_};
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void Worker::pause() { reader_.set_paused(true); }

void Worker::resume() { reader_.set_paused(false); }

bool Worker::wait_ready(Milliseconds timeout) const {
  const bool settled = status_.wait_for(
      [](WorkerState state) { return state == WorkerState::kRunning || has_ended(state); },
      after(clock_.now(), timeout), clock_);
  return settled && !has_ended(status_.state());
}

bool Worker::is_alive(Milliseconds within) const {
  const auto unfinished = ledger_.unfinished();
  // Read after it: what ended before that work came in is seen.
  const TimePoint progress = counters_.progress.load(std::memory_order_relaxed);
  return detail::is_alive(status_.state(), unfinished, progress, clock_.now(), within);
}

WorkerStats Worker::stats() const {
  WorkerStats stats = counters_.snapshot(ledger_.size(), ledger_.queued_bytes());
  if (!config_.metrics) {
    stats.handler_time = {};
    stats.age = {};
  }
  stats.state = status_.state();
  stats.stream = config_.key;
  stats.group = config_.group;
  stats.consumer = config_.consumer;
  return stats;
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
  settle_without_keeper();  // what failed in an earlier page
  const TimePoint sent_at = clock_.now();
  auto taken = take_page(cursor);
  cursor = taken.next_cursor;
  report.deleted_ids.insert(report.deleted_ids.end(), taken.deleted_ids.begin(),
                            taken.deleted_ids.end());
  for (const scripts::Trimmed& trimmed : taken.trimmed) report.deleted_ids.push_back(trimmed.id);
  const auto tickets = hold_taken(shared_, std::move(taken), sent_at, Starter::kCaller);
  report.claimed += tickets.size();

  AckBatch done;
  const auto send = [&] { acknowledge(report, done); };
  Handling::Acks acks{done, send};
  std::vector<Work> works;
  auto next = tickets.begin();
  try {
    while (next != tickets.end() && !stop_.stop_requested()) {
      works.clear();
      while (next != tickets.end() && works.size() < handling_.entries_a_call()) {
        // Those of one lane go one after another: none waits for one that has not been called yet.
        auto work =
            works.empty() ? ledger_.start(*next, stop_.get_token()) : ledger_.try_start(*next);
        if (!work && !works.empty() && ledger_.holds(next->id)) break;
        ++next;
        if (work) works.push_back(std::move(*work));
      }
      if (!works.empty()) handling_.handle(works, run, &acks);
    }
    give_back(ledger_.withdraw(tickets));
  } catch (...) {
    ledger_.not_acknowledged(done);
    keeper_.wake(clock_.now());
    for (; next != tickets.end(); ++next) ledger_.drop(*next);
    throw;
  }
  acknowledge(report, done);
  settle_without_keeper();
}

void Worker::acknowledge(ReapReport& report, AckBatch& done) {
  const auto pipeline = [this](auto&&... args) { return shared_.pool.pipeline(args...); };
  Acknowledging acks{shared_, std::exchange(done, {})};
  acks.send(pipeline);
  report.processed += acks.acknowledged();
  if (!has_keeper()) Acknowledging{shared_, kMostAcks}.send(pipeline);
}

bool Worker::has_keeper() {
  std::lock_guard lock{lifecycle_};
  return started_ && !ended_;
}

scripts::Taken Worker::take_page(StreamId cursor) {
  const auto run = [this](auto&&... args) { return shared_.pool.eval(args...); };
  try {
    auto taken = scripts::take(run, config_, cursor, reap_page_size_.get());
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

void Worker::settle_without_keeper() {
  if (has_keeper()) return;
  const auto pipeline = [this](auto&&... args) { return shared_.pool.pipeline(args...); };
  Acknowledging{shared_, kMostAcks}.send(pipeline);
  const auto eval = [this](auto&&... args) { return shared_.pool.eval(args...); };
  Settling settling{shared_};
  ledger_.park_resting();
  settling.settle({.eval = eval, .pipeline = pipeline}, TimePoint::max());
  if (settling.refusal()) settling.refusal()->raise();
}

void Worker::give_back(const std::vector<Work>& unstarted) {
  if (unstarted.empty()) return;
  const auto holds = giving_back(config_, unstarted);
  const auto found =
      scripts::hold([this](auto&&... args) { return shared_.pool.eval(args...); }, config_, holds);
  std::lock_guard lock{lifecycle_};
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != scripts::Holding::kOurs) continue;
    released_by_reaping_.push_back(holds[i].id);
    count(counters_.released);
  }
}

void Worker::refuse_inside(const char* call) const {
  if (!Inside::of(*this)) return;
  throw InvalidArgument{
      fmt::format("{}() was called from the worker's own handler or observer, where it would "
                  "wait for itself; request_stop() does not wait",
                  call)};
}

}  // namespace millrace::detail
