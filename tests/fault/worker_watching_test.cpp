#include <millrace/prometheus.hpp>

#include "worker_test.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class WorkerWatching : public WorkerTest {
 protected:
  WorkerOptions soon() {
    WorkerOptions soon = options();
    soon.min_idle = 1h;
    soon.block = 20ms;
    return soon;
  }
  [[nodiscard]] static bool is(const ConsumerWorker& worker, WorkerState state) {
    return wait_until([&] { return worker.state() == state; });
  }
};

TEST_F(WorkerWatching, ShowsAnIdleWorkersBacklog) {
  Journal journal;
  ConsumerWorker worker{stream(), soon(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  EXPECT_EQ(stream().group_health("g").backlog(), 0U);
  worker.pause();
  ASSERT_TRUE(is(worker, WorkerState::kPaused));
  append_ids(1'000);
  const GroupHealth health = stream().group_health("g");
  EXPECT_EQ(health.unread, 1'000U);
  EXPECT_EQ(health.backlog(), 1'000U);
  EXPECT_EQ(health.pending, 0U);
  EXPECT_EQ(worker.stats().in_flight, 0U) << "which its own numbers do not say";
  worker.resume();
  EXPECT_TRUE(wait_until([&] { return stream().group_health("g").backlog() == 0U; }));
}

TEST_F(WorkerWatching, FindsReadyWhoReadsAndAliveWhoHasNoWork) {
  ConsumerWorker worker{stream(impatient(100ms)), soon(), [](const Delivery&) {}};
  EXPECT_FALSE(worker.is_ready());
  EXPECT_TRUE(worker.is_alive(0ms)) << "not started";
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.is_ready(); }));
  EXPECT_TRUE(worker.is_alive(0ms)) << "nothing to do";

  server().pause();
  ASSERT_TRUE(wait_until([&] { return !worker.is_ready(); }));
  EXPECT_TRUE(worker.is_alive(0ms)) << "another process would not reach the server either";
  server().resume();
  ASSERT_TRUE(wait_until([&] { return worker.is_ready(); }));

  worker.pause();
  ASSERT_TRUE(wait_until([&] { return !worker.is_ready(); }));
  EXPECT_TRUE(worker.is_alive(0ms));
  worker.stop();
  EXPECT_FALSE(worker.is_ready());
  EXPECT_TRUE(worker.is_alive(0ms)) << "it ended as it was told to";
}

TEST_F(WorkerWatching, FindsDeadWhoseHandlerHangs) {
  append_ids(2);
  Gate gate;
  ConsumerWorker worker{stream(), soon(), [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_TRUE(wait_until([&] { return !worker.is_alive(1ms); }));
  EXPECT_TRUE(worker.is_alive(1h)) << "calls may take so long";
  gate.open();
  ASSERT_TRUE(nothing_is_pending());
  EXPECT_TRUE(worker.is_alive(0ms));
}

TEST_F(WorkerWatching, FindsDeadWhoHasFailed) {
  raw()("SET", "s", "x");
  ConsumerWorker worker{stream(), soon(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(is(worker, WorkerState::kFailed));
  EXPECT_FALSE(worker.is_alive(24h));
  EXPECT_FALSE(worker.is_ready());
  EXPECT_EQ(worker.stats().state, WorkerState::kFailed);
}

TEST_F(WorkerWatching, MeasuresWhatIsHandled) {
  const auto appended = std::chrono::system_clock::now();
  ConsumerWorker worker{stream(), soon(), [](const Delivery&) {}};
  worker.start();
  for (int i = 0; i < 3; ++i) stream().add({{"f", "v"}});
  ASSERT_TRUE(wait_until([&] { return worker.stats().age.count == 3; }));
  const WorkerStats stats = worker.stats();
  EXPECT_EQ(stats.handler_time.count, 3U);
  EXPECT_LT(stats.age.sum, 1h) << "each was appended a moment ago";
  EXPECT_GE(stats.last_completion.value(), appended);
  EXPECT_EQ(stats.consumer, "alice");
  EXPECT_THAT(
      prometheus_text({stats}, {stream().group_health("g")}),
      AllOf(HasSubstr("millrace_worker_succeeded_total{stream=\"s\",group=\"g\",consumer=\"alice\""
                      "} 3\n"),
            HasSubstr("millrace_worker_age_seconds_count{stream=\"s\",group=\"g\",consumer=\"alice"
                      "\"} 3\n"),
            HasSubstr("millrace_group_unread{stream=\"s\",group=\"g\"} 0\n")));
}

TEST_F(WorkerWatching, MeasuresNothingWithoutMetrics) {
  append_ids(3);
  WorkerOptions options = soon();
  options.metrics = false;
  ConsumerWorker worker{stream(), options, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().succeeded == 3; }));
  const WorkerStats stats = worker.stats();
  EXPECT_TRUE(stats.handler_time.bounds.empty());
  EXPECT_TRUE(stats.age.bounds.empty());
  EXPECT_EQ(stats.last_completion, std::nullopt);
  EXPECT_THAT(prometheus_text({stats}), Not(HasSubstr("seconds")));
}

/// Hears of groups, in order.
class GroupObserver : public Observer {
 public:
  void on_group_lost(const Error& error) override { hear("lost: " + std::string{error.prefix()}); }
  void on_group_recreated(StreamId) override { hear("made again"); }
  std::vector<std::string> heard() const {
    const std::lock_guard lock{mutex_};
    return heard_;
  }

 private:
  void hear(const std::string& what) {
    const std::lock_guard lock{mutex_};
    heard_.push_back(what);
  }
  mutable std::mutex mutex_;
  std::vector<std::string> heard_;
};

TEST_F(WorkerWatching, HearsOnceThatAGroupIsLostBeforeItIsMadeAgain) {
  const auto observer = std::make_shared<GroupObserver>();
  WorkerOptions options = soon();
  options.observer = observer;
  ConsumerWorker worker{stream(), options, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  raw()("XGROUP", "DESTROY", "s", "g");
  ASSERT_TRUE(wait_until([&] { return observer->heard().size() >= 2; }));
  worker.stop();
  EXPECT_THAT(observer->heard(), ::testing::ElementsAre("lost: NOGROUP", "made again"));
}

TEST_F(WorkerWatching, HearsThatAGroupIsLostWhichIsNotMadeAgain) {
  const auto observer = std::make_shared<GroupObserver>();
  WorkerOptions options = soon();
  options.observer = observer;
  options.on_missing_group = OnMissingGroup::kFail;
  ConsumerWorker worker{stream(), options, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  raw()("XGROUP", "DESTROY", "s", "g");
  ASSERT_TRUE(is(worker, WorkerState::kFailed));
  EXPECT_THAT(observer->heard(), ::testing::ElementsAre("lost: NOGROUP"));
}

/// Throws from everything, and counts it.
class Throwing : public Observer {
 public:
  explicit Throwing(bool an_exception) : an_exception_{an_exception} {}

  void on_log(LogLevel, std::string_view) override { fail("log"); }
  void on_state(WorkerState, WorkerState) override { fail("state"); }
  void on_connected(std::string_view) override { fail("connected"); }
  void on_connection_lost(const Error&) override { fail("connection lost"); }
  void around_call(std::span<const Delivery>, Call&) override { fail("around call"); }
  void on_delivery(const Delivery&) override { fail("delivery"); }
  void on_verdict(const Delivery&, const Verdict&) override { fail("verdict"); }
  void on_handler_exception(const Delivery&, std::string_view) override { fail("exception"); }
  void on_acknowledged(std::span<const StreamId>, std::size_t) override { fail("acknowledged"); }
  void on_reclaimed(std::span<const StreamId>, std::span<const StreamId>) override {
    fail("reclaimed");
  }
  void on_dead_letter(const DeadLetter&) override { fail("dead letter"); }
  void on_lease_lost(StreamId) override { fail("lease lost"); }
  void on_group_lost(const Error&) override { fail("group lost"); }
  void on_group_recreated(StreamId) override { fail("group recreated"); }

  int thrown(const std::string& from) const {
    const std::lock_guard lock{mutex_};
    const auto found = thrown_.find(from);
    return found == thrown_.end() ? 0 : found->second;
  }

 private:
  void fail(const char* from) {
    {
      const std::lock_guard lock{mutex_};
      ++thrown_[from];
    }
    if (an_exception_) throw std::runtime_error{"an observer's own fault"};
    throw 42;
  }

  const bool an_exception_;
  mutable std::mutex mutex_;
  std::map<std::string, int> thrown_;
};

class WorkerObserverThatThrows : public WorkerWatching,
                                 public ::testing::WithParamInterface<bool> {};

TEST_P(WorkerObserverThatThrows, HarmsNothingWhereverItDoes) {
  append_ids(2);
  orphan("bob");
  raw()("XDEL", "s", "2-0");  // pending, and gone
  append_ids(3, 2);
  const auto observer = std::make_shared<Throwing>(GetParam());
  WorkerOptions options = this->options();
  options.min_idle = 1s;
  options.block = 50ms;
  options.reap_every = 20ms;
  options.retry_backoff = 20ms;
  options.observer = observer;
  std::atomic<bool> was_stolen = false;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          const auto number = delivery.entry.id().ms;
                          if (number == 3 && delivery.attempt == 1) throw std::runtime_error{"no"};
                          if (number == 4) return Verdict::dead_letter("no such card");
                          // Once: it comes again with the new group.
                          if (number != 5 || was_stolen.exchange(true)) return Verdict::ack();
                          raw()("XCLAIM", "s", "g", "carol", 0, "5-0", "IDLE", 0, "JUSTID");
                          EXPECT_TRUE(wait_until([&] { return delivery.stop.stop_requested(); }));
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {3, 0}, {4, 0}, {5, 0}}));
  ASSERT_TRUE(wait_until([&] { return worker.stats().succeeded == 3; })) << "the retry is one";
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(wait_until([&] { return observer->thrown("dead letter") > 0; }));

  EXPECT_EQ(worker.stats().retried, 1U);
  EXPECT_EQ(raw()("XLEN", "{s}:dlq"), ":2") << "what was refused, and what was gone";
  for (const StreamId once : Ids{{1, 0}, {4, 0}, {5, 0}}) {
    EXPECT_EQ(journal.calls_for(once).size(), 1U) << once;
  }
  EXPECT_EQ(journal.calls_for({3, 0}).size(), 2U);

  const int connections = observer->thrown("connected");
  kill_clients();
  ASSERT_TRUE(wait_until([&] { return observer->thrown("connected") > connections; }));
  ASSERT_TRUE(wait_until([&] { return worker.is_ready(); }));
  raw()("XGROUP", "DESTROY", "s", "g");
  ASSERT_TRUE(wait_until([&] { return observer->thrown("group recreated") > 0; }));
  const Ids after = append_ids(3, 10);
  ASSERT_TRUE(journal.wait_for(after));
  ASSERT_TRUE(nothing_is_pending());
  worker.stop();

  for (const char* const callback :
       {"log", "state", "connected", "connection lost", "around call", "delivery", "verdict",
        "exception", "acknowledged", "reclaimed", "dead letter", "lease lost", "group lost",
        "group recreated"}) {
    EXPECT_GT(observer->thrown(callback), 0) << callback;
  }
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_TRUE(journal.overlapping().empty());
}

std::string name_of(const ::testing::TestParamInfo<bool>& info) {
  return info.param ? "AnException" : "SomethingElse";
}

INSTANTIATE_TEST_SUITE_P(, WorkerObserverThatThrows, ::testing::Bool(), name_of);

}  // namespace
}  // namespace millrace::test
