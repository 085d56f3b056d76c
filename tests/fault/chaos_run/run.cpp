#include "run.hpp"

#include "support/wait_until.hpp"

#include <millrace/consumer_worker.hpp>
#include <millrace/format.hpp>

#include <fmt/core.h>

#include "controller.hpp"
#include "plan.hpp"
#include "producer.hpp"
#include "workload.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>

namespace chaos {
namespace {

using namespace millrace;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::array kGroups{kPlain, kOrdered};

/// For what is sure to come, on a slow machine as well.
constexpr auto kLongest = 120s;

// Of the process, since signals are.
std::atomic<int> caught_signal{0};

class Run {
 public:
  explicit Run(const Options& options)
      : options_{options},
        workload_{options.seed, options.entries},
        controller_{options.folder},
        stream_{ConnectionPool{controller_.server().options()}, kStream} {
    for (const int signal : {SIGINT, SIGTERM}) {
      std::signal(signal, [](int number) { caught_signal = number; });
    }
  }

  Report operator()() {
    if (!wait([&] { return controller_.is_ready(); })) {
      throw std::runtime_error{"the workers do not get ready"};
    }
    const auto draws = static_cast<std::size_t>(options_.duration() / 1s);
    report_.options = options_;
    report_.draws = draws;
    const auto start = Clock::now();
    append_amid_faults(draws);
    wait_until_handled();
    wait_for_stale_consumers();
    controller_.terminate_workers();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    judge();
    return std::move(report_);
  }

 private:
  /// Goes on with the run until `condition()` holds. False if it takes too long.
  template <typename Condition>
  bool wait(Condition&& condition, Clock::duration longest = kLongest) {
    const auto end = Clock::now() + longest;
    while (!condition()) {
      if (caught_signal != 0) throw Interrupted{"interrupted"};
      if (Clock::now() >= end) return false;
      controller_.step();
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }

  /// As wait(), but what is asked of the server is not asked often.
  template <typename Condition>
  bool wait_for_server(Condition&& condition) {
    auto next = Clock::now();
    return wait([&] {
      if (Clock::now() < next) return false;
      next = Clock::now() + 100ms;
      return condition();
    });
  }

  void append_amid_faults(std::size_t draws) {
    producer_.emplace(stream_, workload_, options_.duration());
    controller_.start(plan(options_.seed, draws));
    if (!wait([&] { return controller_.is_over() && producer_->is_done(); },
              options_.duration() + kLongest)) {
      throw std::runtime_error{"the entries do not get appended"};
    }
    controller_.calm();
  }

  void wait_until_handled() {
    const StreamId last = stream_.info().last_generated_id;
    const bool handled = wait_for_server([&] {
      for (const GroupInfo& group : stream_.groups()) {
        if (group.last_delivered_id < last || group.pending > 0) return false;
      }
      return true;
    });
    if (!handled) report_.problems.emplace_back("not all was handled within two minutes");
  }

  /// Those of killed workers go when they have been idle for ten times `min_idle`.
  void wait_for_stale_consumers() {
    static_cast<void>(wait_for_server([&] {
      const auto names = controller_.consumers();
      for (const char* group : kGroups) {
        for (const ConsumerInfo& consumer : stream_.consumers(group)) {
          if (!names.contains(consumer.name)) return false;
        }
      }
      return true;
    }));
  }

  void judge() {
    test::Evidence evidence{.groups = {kPlain, kOrdered},
                            .appended = producer_->appended(),
                            .processes = controller_.histories(),
                            .max_deliveries = kMaxDeliveries};
    for (const Entry& entry : stream_.replay_all()) {
      evidence.entries.insert(entry.id());
      if (Task::of(entry).poison != Poison::kNone) evidence.poison.insert(entry.id());
    }
    for (const Entry& letter : DeadLetters{stream_}.stream().replay_all()) {
      evidence.dead_letters.emplace_back(letter.at("dlq_group"),
                                         StreamId::parse(letter.at("dlq_id")));
    }
    for (const char* group : kGroups) {
      for (const PendingEntry& entry : stream_.pending_entries(group, {.count = 1'000})) {
        evidence.pending.emplace_back(group, entry.id);
      }
      // The workers have ended, and taken their consumers with them.
      for (const ConsumerInfo& consumer : stream_.consumers(group)) {
        evidence.stale_consumers.emplace_back(group, consumer.name);
      }
    }
    report_.violations = test::violations(evidence);
    report_.calls = test::count_calls(evidence);
    report_.entries = evidence.entries.size();
    report_.dead_letters = evidence.dead_letters.size();
    report_.unknown = producer_->unknown();
    report_.processes = controller_.processes();
    report_.happened = controller_.happened();
    report_.problems.insert(report_.problems.end(), controller_.surprises().begin(),
                            controller_.surprises().end());
    if (report_.entries < workload_.size()) {
      report_.problems.push_back(
          fmt::format("of {} entries {} are in the stream", workload_.size(), report_.entries));
    }
    if (evidence.poison.size() < Workload::kPoisonEntries) {
      report_.problems.emplace_back("not all poison entries are in the stream");
    }
  }

  const Options& options_;
  const Workload workload_;
  Controller controller_;
  const EventStream stream_;  // past the proxy
  std::optional<Producer> producer_{};
  Report report_{};
};

}  // namespace

Report run(const Options& options) { return Run{options}(); }

}  // namespace chaos
