#include "worker.hpp"

#include "support/history.hpp"
#include "workload.hpp"

#include <millrace/consumer_worker.hpp>
#include <millrace/format.hpp>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

namespace chaos {
namespace {

using namespace millrace;
using namespace std::chrono_literals;
using millrace::test::HistoryWriter;
using millrace::test::Record;
using Event = Record::Event;

/// Writes down what a worker tells of itself.
class Recorder : public Observer {
 public:
  Recorder(HistoryWriter& history, std::string group)
      : history_{history}, group_{std::move(group)} {}

  void on_log(LogLevel /*level*/, std::string_view line) override {
    fmt::print(stderr, "{} {}: {}\n", test::now().count(), group_, line);
  }
  void on_acknowledged(std::span<const StreamId> ids, std::size_t /*pending*/) override {
    std::vector<Record> records;
    for (const StreamId id : ids) records.push_back(record(Event::kAcknowledged, id));
    history_.write(records);
  }
  void on_dead_letter(const DeadLetter& letter) override {
    history_.write(record(Event::kBuried, letter.entry_id));
  }
  void on_lease_lost(StreamId id) override { history_.write(record(Event::kLeaseLost, id)); }

 private:
  Record record(Event event, StreamId id) const {
    return {.event = event, .at = test::now(), .group = group_, .id = id};
  }

  HistoryWriter& history_;
  const std::string group_;
};

/// One call of the handler.
class HandlerCall {
 public:
  HandlerCall(HistoryWriter& history, const Delivery& delivery)
      : history_{history}, delivery_{delivery}, task_{Task::of(delivery.entry)} {}

  Verdict operator()() {
    Record started = record(Event::kStarted);
    started.attempt = delivery_.attempt;
    started.reclaimed = delivery_.reclaimed;
    if (delivery_.group == kOrdered) started.lane = task_.lane;
    history_.write(started);
    const std::stop_callback stopped{delivery_.stop,
                                     [this] { history_.write(record(Event::kStopFired)); }};
    if (!work()) return fail(Verdict::retry());
    if (task_.poison != Poison::kNone) return be_poison();
    if (task_.fails(delivery_.group, delivery_.attempt)) throw_by_chance();
    history_.write(record(Event::kSucceeded));
    return Verdict::ack();
  }

 private:
  Record record(Event event) const {
    return {.event = event,
            .at = test::now(),
            .group = std::string{delivery_.group},
            .id = delivery_.entry.id()};
  }

  /// False if it was told to give up, and does.
  bool work() const {
    const auto end = test::now() + task_.duration(delivery_.group, delivery_.attempt);
    for (auto left = end - test::now(); left > 0ns; left = end - test::now()) {
      if (delivery_.stop.stop_requested() && !task_.ignores_stop()) return false;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, 20ms));
    }
    return true;
  }

  Verdict fail(Verdict verdict, Event event = Event::kFailed) {
    history_.write(record(event));
    return verdict;
  }

  [[noreturn]] void throw_by_chance() {
    history_.write(record(Event::kFailed));
    throw std::runtime_error{"by chance"};
  }

  Verdict be_poison() {
    switch (task_.poison) {
      case Poison::kThrows:
        history_.write(record(Event::kFailed));
        throw std::runtime_error{"poison"};
      case Poison::kPermanent:
        history_.write(record(Event::kRefused));
        throw PermanentError{"poison"};
      case Poison::kVerdict:
        return fail(Verdict::dead_letter("poison"), Event::kRefused);
      case Poison::kAborts:
        history_.write(record(Event::kAborting));
        std::abort();
      default:
        return fail(Verdict::retry());
    }
  }

  HistoryWriter& history_;
  const Delivery& delivery_;
  const Task task_;
};

WorkerOptions options_for(const std::string& group, const std::string& name) {
  WorkerOptions options{.group = group,
                        .consumer = name == "-" ? "" : name,
                        .group_start = GroupStart::beginning(),
                        .concurrency = 4,
                        .prefetch = 64,
                        .min_idle = kMinIdle,
                        .reap_every = 1s,
                        .max_deliveries = kMaxDeliveries,
                        .retry_backoff = 200ms,
                        .reconnect_min = 20ms,
                        .reconnect_max = 500ms};
  if (group == kOrdered) options.key = [](const Entry& e) { return std::string{e.at("lane")}; };
  return options;
}

/// Once the workers read, for the program that has started this one.
void tell_names(const Options& options, std::initializer_list<ConsumerWorker*> workers) {
  const std::string file = names_file(options.worker_history);
  std::ofstream names{file + ".new"};
  for (ConsumerWorker* worker : workers) {
    // Where it takes longer, or has failed, is seen elsewhere.
    static_cast<void>(worker->wait_ready(60s));
    names << worker->consumer() << '\n';
  }
  names.close();
  std::filesystem::rename(file + ".new", file);
}

}  // namespace

std::string names_file(const std::string& history) { return history + ".names"; }

int run_worker(const Options& options) {
  // Signals are waited for, below; blocked before there are threads, they come to none of these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  // No worker outlives the program that has started it, or leaves a core when it is to abort.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() == 1) return 1;
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);

  HistoryWriter history{options.worker_history};
  const EventStream stream{ConnectionPool{ConnectionOptions::from_uri(options.worker_uri)},
                           kStream};
  const auto make = [&](const char* group) {
    WorkerOptions of_group = options_for(group, options.worker_name);
    of_group.observer = std::make_shared<Recorder>(history, group);
    return std::make_unique<ConsumerWorker>(stream, of_group, [&history](const Delivery& d) {
      return HandlerCall{history, d}();
    });
  };
  const auto plain = make(kPlain);
  const auto ordered = make(kOrdered);
  plain->start();
  ordered->start();
  tell_names(options, {plain.get(), ordered.get()});

  const timespec look{.tv_sec = 0, .tv_nsec = 200'000'000};
  while (::sigtimedwait(&signals, nullptr, &look) != SIGTERM) {
    for (const auto* worker : {plain.get(), ordered.get()}) {
      if (const auto failure = worker->failure()) {
        fmt::print(stderr, "failed: {}\n", failure->what());
        return 4;
      }
    }
  }
  plain->stop();
  ordered->stop();
  return plain->failure() || ordered->failure() ? 4 : 0;
}

}  // namespace chaos
