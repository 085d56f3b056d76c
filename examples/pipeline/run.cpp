#include "run.hpp"

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "checksum.hpp"
#include "interruption.hpp"
#include "worker.hpp"
#include "worker_process.hpp"

namespace pipeline {
namespace {

using namespace millrace;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A folder that goes away with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    auto path = (std::filesystem::temp_directory_path() / "millrace-pipeline-XXXXXX").string();
    if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error{"cannot make " + path};
    path_ = path;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_{};
};

/// One line that is written over and over, where somebody may be watching.
class ProgressLine {
 public:
  ~ProgressLine() { show(""); }

  void show(const std::string& text) const {
    if (is_terminal_) fmt::print(stderr, "\r\033[K{}", text);
  }

 private:
  bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
};

class Run {
 public:
  Run(const Options& options, std::span<const OwnedFields> records)
      : records_{records},
        stream_{ConnectionPool{ConnectionOptions::from_uri(options.uri)}, options.stream} {
    if (stream_.length() > 0 || !stream_.groups().empty()) {
      throw std::runtime_error{fmt::format("there is a stream '{}' already", options.stream)};
    }
    workers_.emplace_back(options, "index", "index-1", folder_.path());
    workers_.emplace_back(options, "index", "index-2", folder_.path());
    workers_.emplace_back(options, "audit", "audit-1", folder_.path());
  }

  Report operator()() {
    wait_for_workers();
    append_all();
    wait_until_processed();
    for (auto& worker : workers_) worker.stop();
    read_journals();
    replay();
    report_.trimmed = stream_.trim_safely();
    return std::move(report_);
  }

 private:
  static constexpr std::array<const char*, 2> kGroups{"index", "audit"};

  /// Waits until `condition()`, for at most `deadline`, while the workers are well. True if it
  /// holds.
  template <typename Condition>
  bool wait(Clock::duration deadline, Condition condition) {
    const auto end = Clock::now() + deadline;
    while (!condition()) {
      if (Clock::now() >= end) return false;
      interruption_.check();
      for (auto& worker : workers_) worker.check();
      std::this_thread::sleep_for(10ms);
    }
    return true;
  }

  void wait_for_workers() {
    const bool ready = wait(40s, [&] {
      return std::ranges::all_of(workers_, [](const WorkerProcess& worker) {
        return std::filesystem::exists(ready_mark(worker.journal()));
      });
    });
    if (!ready) throw std::runtime_error{"the workers do not get ready"};
  }

  /// Appends all records in parts. Around a third of the way on, a worker is killed.
  void append_all() {
    start_ = Clock::now();
    report_.records = records_.size();
    const auto part_size = std::clamp<std::size_t>(records_.size() / 20, 1, 500);
    for (std::size_t i = 0; i < records_.size(); i += part_size) {
      interruption_.check();
      const auto part = records_.subspan(i, std::min(part_size, records_.size() - i));
      if (report_.killed.empty() && i >= records_.size() / 3) {
        append_and_kill(part);
      } else {
        append(part);
      }
      progress_.show(fmt::format("{} of {} records appended", appended_.size(), records_.size()));
    }
    report_.entries = appended_.size();
    report_.append_seconds = seconds_since(start_);
  }

  void append(std::span<const OwnedFields> part) {
    const auto results = stream_.add_batch(part);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (results[i].error) results[i].error->raise();
      appended_.emplace(results[i].id.value(), checksum(part[i]));
    }
  }

  /// Appends while the two workers of a group stand still. What the server delivers to them now
  /// they cannot acknowledge, so one of them is sure to be killed with entries in its hands.
  void append_and_kill(std::span<const OwnedFields> part) {
    WorkerProcess* const pair[] = {&workers_[0], &workers_[1]};
    for (auto* worker : pair) worker->freeze();
    append(part);

    wait(200ms,
         [&] { return std::ranges::any_of(pair, [&](auto* w) { return held_by(*w) > 0; }); });
    auto& victim = held_by(*pair[0]) >= held_by(*pair[1]) ? *pair[0] : *pair[1];
    if (held_by(victim) > 0) {
      victim.kill();
      report_.killed = victim.consumer();
      report_.held = held_by(victim);
    }
    for (auto* worker : pair) {
      if (!worker->was_killed()) worker->thaw();
    }
  }

  std::size_t held_by(const WorkerProcess& worker) const {
    return stream_.pending_entries(worker.group(), {.count = 10'000, .consumer = worker.consumer()})
        .size();
  }

  /// Waits until every group has read and acknowledged everything, and sees when.
  void wait_until_processed() {
    const StreamId last = appended_.rbegin()->first;
    const auto deadline = 60s + 5ms * records_.size();
    const bool done = wait(deadline, [&] {
      std::string text;
      for (const auto& group : stream_.groups()) {
        const bool is_done = group.last_delivered_id >= last && group.pending == 0;
        if (is_done) seconds_.try_emplace(group.name, seconds_since(start_));
        text += fmt::format("{}: {} pending   ", group.name, group.pending);
      }
      progress_.show(text);
      return seconds_.size() == kGroups.size();
    });
    if (!done) throw std::runtime_error{"the groups do not get done"};
  }

  void read_journals() {
    for (const auto* group : kGroups) {
      std::vector<Handled> handled;
      for (const auto& worker : workers_) {
        if (worker.group() != group) continue;
        const auto journal = Journal::read(worker.journal());
        handled.insert(handled.end(), journal.begin(), journal.end());
      }
      report_.groups.push_back({group, tally(appended_, handled), seconds_[group]});
    }
  }

  /// Counts what the stream has kept of what was appended.
  void replay() {
    for (const auto& entry : stream_.replay_all()) {
      interruption_.check();
      const auto found = appended_.find(entry.id());
      if (found != appended_.end() && found->second == checksum(entry)) ++report_.replayed;
    }
  }

  Interruption interruption_{};
  std::span<const OwnedFields> records_;
  EventStream stream_;
  TemporaryFolder folder_{};
  ProgressLine progress_{};
  std::vector<WorkerProcess> workers_{};
  Appended appended_{};
  Clock::time_point start_{};
  std::map<std::string, double> seconds_{};  ///< Until a group was done.
  Report report_{};
};

}  // namespace

Report run(const Options& options, std::span<const OwnedFields> records) {
  return Run{options, records}();
}

}  // namespace pipeline
