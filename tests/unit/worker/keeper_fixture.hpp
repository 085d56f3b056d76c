#pragma once

#include "support/jumping_clock.hpp"
#include "support/wait_until.hpp"
#include "unit/worker/fakes.hpp"
#include "worker/keeper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::detail {

/// A Keeper on a thread of its own, against a server that answers as the scripts do.
class KeeperTest : public ::testing::Test {
 protected:
  struct Run {
    std::string script;
    Words args;
  };

  KeeperTest() {
    // So that nothing wakes it but what it is told.
    parts_.config.min_idle = parts_.config.lease_renew_every = std::chrono::hours{1};
  }
  ~KeeperTest() override {
    keeper_.abandon();
    end();
  }

  void start() {
    thread_ = std::thread{[this] { keeper_.run(stop_.get_token()); }};
  }
  void end(bool connected = true) {
    stop_.request_stop();
    keeper_.work_ended(connected);
    if (thread_.joinable()) thread_.join();
  }
  /// The reader has opened the group.
  void open() {
    parts_.group.renewed(now(), std::nullopt, std::nullopt);
    keeper_.wake(now());
  }
  static TimePoint now() { return Clock::system().now(); }

  Work running(StreamId id) { return detail::running(parts_.ledger, work_of(id, now())); }
  void finish(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i <= to; ++i) {
      const auto due = parts_.ledger.finish(running({i, 0}).ticket, now());
      if (due) keeper_.wake(*due);
    }
  }
  void fail(const Work& work, Settlement::Kind kind, Milliseconds pause = Milliseconds{0}) {
    parts_.ledger.fail({.kind = kind, .work = work, .due = now() + pause});
    keeper_.wake(now());
  }

  /// From now on the server answers this to XACK, or to a script; nothing: all is well again.
  void refuse(const std::string& what, const std::string& error) {
    const std::lock_guard lock{mutex_};
    refusals_.erase(what);
    if (!error.empty()) refusals_[what] = error;
  }

  /// What was run of this script.
  std::vector<Words> ran(const std::string& script) const {
    const std::lock_guard lock{mutex_};
    std::vector<Words> ran;
    for (const Run& run : runs_) {
      if (run.script == script) ran.push_back(run.args);
    }
    return ran;
  }
  /// How often the place in the record was renewed.
  std::size_t renewals() const {
    const auto holds = ran("hold");
    return static_cast<std::size_t>(std::count_if(
        holds.begin(), holds.end(), [](const Words& args) { return !args[3].empty(); }));
  }

  std::atomic<int> connects_{0};
  std::atomic<bool> refuses_{false};
  std::atomic<std::size_t> acked_{0};
  std::atomic<int> acks_tried_{0};
  std::atomic<int> unblocks_{0};
  std::atomic<int> needed_unblocks_{1};
  std::atomic<int> found_{1};    // what hold.lua says of each entry
  std::atomic<int> pending_{0};  // for us, as the server knows
  std::atomic<int> recoveries_{0}, hang_ups_{0}, interrupts_{0}, failures_{0};
  // Set before the start.
  Milliseconds on_the_way_{0};  // each reply of hold.lua, by the keeper's clock
  std::string consumers_ = "*0\r\n", buried_ = ":1\r\n", refusal_;
  test::JumpingClock clock_;
  Parts parts_{[this](const std::stop_token& stop) { return connect(stop); }, &clock_};
  std::optional<ReadGate::Visit> visit_;
  Keeper keeper_{parts_.shared,
                 {.recover = [this] { ++recoveries_; },
                  .hang_up = [this] { ++hang_ups_; },
                  .interrupt = [this] { ++interrupts_; },
                  .fail = [this](const Error&) { ++failures_; }}};
  std::stop_source stop_;
  std::thread thread_;

 private:
  std::unique_ptr<Connection> connect(const std::stop_token& stop) {
    ++connects_;
    if (stop.stop_requested()) throw Interrupted{};
    if (refuses_) throw ConnectError{"cannot connect"};
    return std::make_unique<ScriptedConnection>([this](const Words& words) {
      if (refuses_) throw IoError{"lost"};
      return answer(words);
    });
  }
  std::string answer(const Words& words) {
    if (words[0] == "XACK") {
      ++acks_tried_;
      if (const auto refusal = refusal_of("XACK"); !refusal.empty()) return refusal;
      acked_ += words.size() - 3;
      return ":" + std::to_string(words.size() - 3) + "\r\n";
    }
    if (words[0] == "CLIENT") {
      if (++unblocks_ < needed_unblocks_) return ":0\r\n";  // the read is still on its way
      visit_.reset();
      return ":1\r\n";
    }
    if (words[0] == "EVALSHA") {
      const auto keys = std::stol(words[2]);
      return run(script_name(words[1]), {words.begin() + 3 + keys, words.end()});
    }
    return words[1] == "CONSUMERS" ? consumers_ : "-ERR no such key\r\n";
  }
  std::string run(const std::string& script, Words args) {
    const std::lock_guard lock{mutex_};
    runs_.push_back({script, args});
    if (!refusal_.empty()) return refusal_;
    if (const auto refusal = refusals_.find(script); refusal != refusals_.end()) {
      return refusal->second;
    }
    if (script == "bury") return buried_;
    if (script != "hold") return ":0\r\n";
    clock_.jump(on_the_way_);
    const std::size_t count = (args.size() - 4) / 4;
    std::string answers = "*" + std::to_string(count) + "\r\n";
    for (std::size_t i = 0; i < count; ++i) answers += ":" + std::to_string(found_) + "\r\n";
    if (args[3].empty()) return "*1\r\n" + answers;
    return "*3\r\n" + answers + ":" + std::to_string(pending_) + "\r\n$3\r\n7-0\r\n";
  }

  std::string refusal_of(const std::string& what) const {
    const std::lock_guard lock{mutex_};
    const auto refusal = refusals_.find(what);
    return refusal == refusals_.end() ? std::string{} : refusal->second;
  }

  mutable std::mutex mutex_;
  std::vector<Run> runs_;
  std::map<std::string, std::string> refusals_;
};

}  // namespace millrace::detail
