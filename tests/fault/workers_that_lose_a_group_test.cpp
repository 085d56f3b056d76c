#include "support/monitor.hpp"
#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

namespace millrace::test {
namespace {

/// Two workers that read one group, which goes: who makes it again, and where?
class WorkersThatLoseAGroup : public WorkerTest {
 protected:
  WorkerOptions named(const std::string& name, const std::shared_ptr<RecordingObserver>& observer) {
    WorkerOptions named = options();
    named.consumer = name;
    named.observer = observer;
    named.min_idle = 1h;
    named.lease_renew_every = 50ms;  // the group is looked at as often
    named.block = 10s;
    named.reap_every = 0ms;
    named.reconnect_min = 1ms;
    named.reconnect_max = 20ms;
    return named;
  }

  /// True once the group was looked at after all that was done so far.
  [[nodiscard]] bool has_been_looked_at() {
    const auto looks = calls_of("xinfo|stream");
    return wait_until([&] { return calls_of("xinfo|stream") >= looks + 4; });
  }

  /// What was carried out since the monitor was made, by scripts or not, that has these words.
  std::size_t carried_out(Monitor& monitor, std::string_view words) {
    raw()("ECHO", Monitor::kMark);
    const auto lines = monitor.until_mark();
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(),
        [words](const std::string& line) { return line.find(words) != std::string::npos; }));
  }

  std::string making() { return raw()("HGET", "{s}:millrace:g", "made").text; }

  std::shared_ptr<RecordingObserver> alices_ = std::make_shared<RecordingObserver>();
  std::shared_ptr<RecordingObserver> bobs_ = std::make_shared<RecordingObserver>();
};

TEST_F(WorkersThatLoseAGroup, LeaveItWhereThePeerMadeItThatWasFirst) {
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker alice{stream(), named("alice", alices_), journal.handler()};
  ConsumerWorker bob{stream(proxy.options()), named("bob", bobs_), journal.handler()};
  alice.start();
  bob.start();
  ASSERT_TRUE(journal.wait_for(append_ids(10)));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(has_been_looked_at());
  ASSERT_TRUE(blocked(2));

  // Bob does not hear of it before all is done that was appended since.
  Monitor monitor{server()};
  const std::string before = making();
  proxy.stall();
  raw()("XGROUP", "DESTROY", "s", "g");
  ASSERT_TRUE(journal.wait_for(append_ids(10, 10)));
  ASSERT_TRUE(nothing_is_pending());
  const std::string once = making();
  EXPECT_NE(once, before);
  proxy.flow();
  ASSERT_TRUE(wait_until([&] { return !bobs_->recreated().empty(); }));
  EXPECT_TRUE(journal.wait_for(append_ids(10, 20)));
  EXPECT_TRUE(nothing_is_pending());

  EXPECT_EQ(making(), once) << "made once";
  EXPECT_EQ(carried_out(monitor, R"("SETID")"), 0U) << "and not set back";
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_EQ(alices_->recreated(), (Ids{{10, 0}}));
  EXPECT_EQ(bobs_->recreated(), (Ids{{10, 0}})) << "where she made it";
}

TEST_F(WorkersThatLoseAGroup, SetItBackOnceWhereAStrangerMadeIt) {
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker alice{stream(proxy.options()), named("alice", alices_), journal.handler()};
  ConsumerWorker bob{stream(proxy.options()), named("bob", bobs_), journal.handler()};
  alice.start();
  bob.start();
  ASSERT_TRUE(journal.wait_for(append_ids(10)));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(has_been_looked_at());
  ASSERT_TRUE(blocked(2));

  Monitor monitor{server()};
  proxy.stall();
  raw()("XGROUP", "DESTROY", "s", "g");
  const Ids passed_over = append_ids(10, 10);
  raw()("XGROUP", "CREATE", "s", "g", "$");
  proxy.flow();
  EXPECT_TRUE(journal.wait_for(passed_over));
  ASSERT_TRUE(
      wait_until([&] { return alices_->recreated().size() + bobs_->recreated().size() == 2; }));
  EXPECT_TRUE(journal.wait_for(append_ids(10, 20)));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(carried_out(monitor, R"("SETID")"), 1U);
}

TEST_F(WorkersThatLoseAGroup, MakeItOnceEachTimeAndLoseNothingThatIsAppendedMeanwhile) {
  constexpr std::size_t kLosses = 10;
  Journal journal;
  ConsumerWorker alice{stream(), named("alice", alices_), journal.handler()};
  ConsumerWorker bob{stream(), named("bob", bobs_), journal.handler()};
  alice.start();
  bob.start();
  ASSERT_TRUE(alice.wait_ready(kGenerous));
  ASSERT_TRUE(bob.wait_ready(kGenerous));

  Monitor monitor{server()};
  std::atomic<bool> is_over{false};
  Ids ids;
  std::thread producer{[&] {
    RawClient mine{server().options()};
    while (!is_over) {
      ids.push_back({ids.size() + 1, 0});
      mine("XADD", "s", ids.back(), "f", "v");
    }
  }};
  std::size_t losses = 0;
  for (; losses < kLosses; ++losses) {
    const std::size_t calls = journal.size();
    const std::string before = making();
    if (!wait_until([&] { return journal.size() >= calls + 20; })) break;
    raw()("XGROUP", "DESTROY", "s", "g");
    if (!wait_until([&] { return making() != before; })) break;
  }
  is_over = true;
  producer.join();
  EXPECT_EQ(losses, kLosses);
  EXPECT_TRUE(journal.wait_for(ids)) << journal.missing(ids).size() << " are missing";
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(carried_out(monitor, R"("HSET" "{s}:millrace:g" "made")"), kLosses);
}

}  // namespace
}  // namespace millrace::test
