#include "fault/worker_test.hpp"
#include "millrace_scripts.hpp"
#include "support/monitor.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iomanip>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace millrace::test {
namespace {

using ::testing::IsSubsetOf;
using Words = std::vector<std::string>;

/// The words of a command, as a line of MONITOR shows them: `1700.1 [0 lua] "XACK" "s" "g" "0-0"`.
Words words_in(const std::string& line) {
  std::istringstream rest{line.substr(line.find("] \"") + 2)};
  Words words;
  for (std::string word; rest >> std::quoted(word);) words.push_back(word);
  return words;
}

bool is_by_a_script(const std::string& line) { return line.find(" lua] ") != std::string::npos; }

/// A worker that does all that a worker can do, and each command that the server carried out.
class MonitoredWorker : public WorkerTest {
 protected:
  static constexpr std::size_t kEntries = 100;

  /// Alice has 100 old entries of her own, takes over 100 of bob's, of which one was trimmed, and
  /// reads 100 new ones. One fails, is tried again, and has a dead letter.
  std::vector<std::string> life_of_a_worker() {
    append_ids(3 * kEntries);
    orphan("alice", kEntries);
    raw()("XREADGROUP", "GROUP", "g", "bob", "COUNT", kEntries, "STREAMS", "s", ">");
    for (std::uint64_t i = kEntries + 1; i <= 2 * kEntries; ++i) {
      raw()("XCLAIM", "s", "g", "bob", 0, StreamId{i, 0}, "IDLE", 7'200'000, "JUSTID");
    }
    raw()("XDEL", "s", StreamId{kEntries + 1, 0});

    Monitor monitor{server()};
    WorkerOptions all = options();
    all.min_idle = 1h;
    all.block = 50ms;
    all.prefetch = 1'000;
    all.reap_every = 50ms;
    all.lease_renew_every = 20ms;
    all.retry_backoff = 1ms;
    all.max_deliveries = 2;
    Journal journal;
    ConsumerWorker worker{stream(), all, journal.handler([](const Delivery& delivery) {
                            return delivery.entry.id() == StreamId{3 * kEntries, 0}
                                       ? Verdict::retry()
                                       : Verdict::ack();
                          })};
    worker.start();
    EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 2; }));
    EXPECT_TRUE(nothing_is_pending());
    EXPECT_TRUE(wait_until([&] { return raw()("HEXISTS", "{s}:millrace:g", "mark") == ":1"; }));
    worker.stop(kGenerous);
    EXPECT_EQ(journal.size(), 3 * kEntries);
    raw()("ECHO", Monitor::kMark);
    return monitor.until_mark();
  }

  /// What the server takes for the keys of a command.
  std::set<std::string> keys_of(const Words& command) {
    Words ask{"COMMAND", "GETKEYS"};
    ask.insert(ask.end(), command.begin(), command.end());
    std::set<std::string> keys;
    const RawReply reply = raw().call(ask);
    if (reply.is_error()) return keys;  // it has none
    for (const RawReply& key : reply.elements) keys.insert(key.text);
    return keys;
  }
};

TEST_F(MonitoredWorker, ChangesThePendingListByItsScriptsAlone) {
  std::set<std::string> sent;
  std::set<std::string> by_scripts;
  for (const std::string& line : life_of_a_worker()) {
    const std::string name = words_in(line).at(0);
    if (name.starts_with("X")) (is_by_a_script(line) ? by_scripts : sent).insert(name);
  }
  sent.erase("XPENDING");  // looked at, and asked for by this test
  EXPECT_EQ(sent, (std::set<std::string>{"XACK", "XREADGROUP"}));
  EXPECT_THAT((Words{"XACK", "XADD", "XCLAIM", "XGROUP"}), IsSubsetOf(by_scripts));
}

TEST_F(MonitoredWorker, DeclaresTheKeysThatAScriptTouchesAndNoOthers) {
  struct Keys {
    std::set<std::string> declared;
    std::set<std::string> touched;
  };
  std::map<std::string, Keys> scripts;
  Keys* running = nullptr;
  for (const std::string& line : life_of_a_worker()) {
    const Words words = words_in(line);
    if (is_by_a_script(line)) {
      ASSERT_NE(running, nullptr) << line;
      running->touched.merge(keys_of(words));
    } else if (words[0] == "EVALSHA" || words[0] == "EVAL") {
      // The text is sent where the server does not know the script by its name.
      running = &scripts[words[0] == "EVAL" ? "by its text" : words.at(1)];
      running->declared.merge(keys_of(words));
    }
  }
  for (const detail::Script* script :
       {&detail::kBuryScript, &detail::kHoldScript, &detail::kLeaveScript, &detail::kOpenScript,
        &detail::kRetakeScript, &detail::kTakeScript}) {
    const Keys& keys = scripts[std::string{script->sha1}];
    EXPECT_THAT(keys.touched, IsSubsetOf(keys.declared));
    const bool writes_letters = script == &detail::kBuryScript || script == &detail::kTakeScript;
    EXPECT_EQ(keys.declared,
              (writes_letters ? std::set<std::string>{"s", "{s}:dlq", "{s}:millrace:g"}
                              : std::set<std::string>{"s", "{s}:millrace:g"}))
        << script->source.substr(script->source.rfind("\n-- Answers"));
  }
}

TEST_F(MonitoredWorker, AsksAScriptForAFewAtATime) {
  const std::string take{detail::kTakeScript.sha1};
  const std::string retake{detail::kRetakeScript.sha1};
  std::size_t takes = 0;
  std::size_t retaken = 0;
  for (const std::string& line : life_of_a_worker()) {
    const Words words = words_in(line);
    if (words.size() < 3 || !words[0].starts_with("EVAL")) continue;
    const std::size_t args = 3 + std::stoul(words[2]);  // group, consumer, token, ...
    if (words[1] == take || words[1] == detail::kTakeScript.source) {
      ++takes;
      EXPECT_LE(std::stoul(words.at(args + 5)), 64U) << line;
    } else if (words[1] == retake || words[1] == detail::kRetakeScript.source) {
      const std::size_t ids = (words.size() - args - 4) / 2;
      EXPECT_LE(ids, 64U) << line;
      retaken += ids;
    }
  }
  EXPECT_GE(takes, 2U);
  EXPECT_GE(retaken, kEntries);
}

/// Commands that take entries up: those that are idle, retries, and new ones.
std::size_t taken_up(const std::vector<std::string>& lines) {
  const auto takes_up = [](const std::string& line) {
    const Words words = words_in(line);
    if (words[0] == "XREADGROUP" || words[0] == "XAUTOCLAIM") return true;
    if (!words[0].starts_with("EVAL")) return false;
    return words[1] == detail::kRetakeScript.sha1 || words[1] == detail::kRetakeScript.source;
  };
  return static_cast<std::size_t>(std::count_if(lines.begin(), lines.end(), takes_up));
}

/// A worker that is asked to stop while a handler runs, with so many threads for handlers.
class StoppingWorker : public WorkerTest, public ::testing::WithParamInterface<std::size_t> {};

TEST_P(StoppingWorker, TakesNothingUpAnyMoreAlthoughAHandlerRuns) {
  append_ids(2);
  Gate gate;
  Journal journal;
  WorkerOptions busy = options();
  busy.concurrency = GetParam();
  busy.min_idle = 1h;
  busy.lease_renew_every = 20ms;
  busy.reap_every = 2s;
  ConsumerWorker worker{stream(), busy, journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{2, 0})
                            return Verdict::retry_after(2s);
                          if (delivery.attempt == 1) return Verdict::retry_after(200ms);
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  ASSERT_TRUE(wait_until([&] { return worker.stats().retried == 2; }));
  ASSERT_TRUE(blocked(GetParam() > 1 ? 1 : 0)) << "one thread for both, or the other one reads";

  Monitor monitor{server()};
  worker.request_stop();
  ASSERT_TRUE(blocked(0));
  raw()("ECHO", Monitor::kMark);
  static_cast<void>(monitor.until_mark());
  // From now on there is an entry for the reaper, and before long a retry is due, and a sweep.
  append_ids(1, 2);
  raw()("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", ">");
  raw()("XCLAIM", "s", "g", "bob", 0, "3-0", "IDLE", 7'200'000, "JUSTID");
  const auto due = std::chrono::steady_clock::now() + 3s;
  ASSERT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() >= due; }));
  const std::string renewed = raw()("HGET", "{s}:millrace:g", "renewed").text;
  EXPECT_TRUE(wait_until([&] {
    return raw()("HGET", "{s}:millrace:g", "renewed").text != renewed;
  })) << "it still renews";
  gate.open();
  const StopReport report = worker.stop(kGenerous);
  raw()("ECHO", Monitor::kMark);

  EXPECT_EQ(taken_up(monitor.until_mark()), 1U) << "bob's";
  EXPECT_EQ(report.finished, 1U);
  EXPECT_EQ(journal.calls_for({1, 0}).size(), 2U);
  EXPECT_EQ(journal.size(), 3U);
  EXPECT_EQ(owner({2, 0}), "alice") << "a peer will find it";
  EXPECT_EQ(owner({3, 0}), "bob");
}

INSTANTIATE_TEST_SUITE_P(Threads, StoppingWorker, ::testing::Values(1, 2),
                         [](const auto& threads) { return std::to_string(threads.param); });

}  // namespace
}  // namespace millrace::test
