#include "reap_on_demand_test.hpp"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

/// What reap_idle_pending() handles on its caller's thread, beside the loop and beside others.
class WorkerReapBeside : public ReapOnDemandTest {
 protected:
  std::uint64_t next_ = 1;
};

TEST_F(WorkerReapBeside, HasItsRetriesMadeOnTimeAlthoughAReadWaits) {
  for (const bool has_key : {false, true}) {
    const Ids ids = append_ids(1, has_key ? 1 : 0);
    orphan("bob", 1);
    make_idle(ids);
    WorkerOptions options = on_demand();
    options.block = 10min;
    options.retry_backoff = 20ms;
    if (has_key) options.key = [](const Entry&) { return std::string{"one"}; };
    Journal journal;
    ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                            return delivery.attempt == 2 ? Verdict::retry() : Verdict::ack();
                          })};
    worker.start();
    ASSERT_TRUE(worker.wait_ready(kGenerous));
    ASSERT_TRUE(blocked());
    EXPECT_EQ(worker.reap_idle_pending().claimed, 1U);
    EXPECT_TRUE(journal.wait_for_calls(2)) << "at most a second late";
    EXPECT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
    EXPECT_EQ(worker.stats().reconnects, 0U) << "the read was ended, and not broken off";
  }
}

TEST_F(WorkerReapBeside, HasItsRetriesMadeOnTimeWithoutThePermissionToEndARead) {
  WorkerOptions options = on_demand();
  options.block = 10min;
  options.retry_backoff = 20ms;
  for (const std::string denied : {"-client|unblock", "-client"}) {
    raw()("ACL", "SETUSER", "default", "+@all", denied);
    Journal journal;
    ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                            return delivery.attempt == 2 ? Verdict::retry() : Verdict::ack();
                          })};
    const Ids ids = append_ids(2, next_ - 1);
    next_ += ids.size();
    orphan("bob", ids.size());
    make_idle({ids[0]});
    worker.start();
    ASSERT_TRUE(worker.wait_ready(kGenerous));
    ASSERT_TRUE(blocked());
    EXPECT_EQ(worker.reap_idle_pending().claimed, 1U);
    if (denied == "-client|unblock") {
      // The first time nobody knows.
      ASSERT_TRUE(wait_until([&] { return heard().text().find("NOPERM") != std::string::npos; }));
      append_ids(1, next_++ - 1);
      EXPECT_TRUE(journal.wait_for_calls(3));
      make_idle({ids[1]});
      EXPECT_EQ(worker.reap_idle_pending().claimed, 1U);
    }
    EXPECT_TRUE(wait_until([&] { return deliveries(ids[0]) < 0; })) << denied;
    if (denied == "-client|unblock") {
      EXPECT_TRUE(wait_until([&] { return deliveries(ids[1]) < 0; }));
    }
    worker.stop();
  }
}

TEST_F(WorkerReapBeside, AcknowledgesALastStartBeforeANeighbourStarts) {
  left_by_bob(4);
  raw()("XCLAIM", "s", "g", "bob", 0, "2-0", "3-0", "IDLE", 7'200'000, "RETRYCOUNT", 4, "JUSTID");
  for (const bool started : {false, true}) {
    std::vector<std::int64_t> pending_then;
    ConsumerWorker worker{stream(), on_demand(), [&](const Delivery& delivery) {
                            RawClient raw{server().options()};
                            pending_then.push_back(raw("XPENDING", "s", "g")[0].integer);
                            EXPECT_EQ(delivery.attempt == 5, delivery.entry.id().ms % 4 > 1);
                          }};
    if (started) {
      append_ids(4, 4);
      raw()("XREADGROUP", "GROUP", "g", "bob", "STREAMS", "s", ">");
      make_idle({{5, 0}, {6, 0}, {7, 0}, {8, 0}});
      raw()("XCLAIM", "s", "g", "bob", 0, "6-0", "7-0", "IDLE", 7'200'000, "RETRYCOUNT", 4,
            "JUSTID");
      worker.start();
      ASSERT_TRUE(worker.wait_ready(kGenerous));
    }
    EXPECT_EQ(worker.reap_idle_pending().processed, 4U);
    EXPECT_THAT(pending_then, ::testing::ElementsAre(4, 3, 2, 1));
  }
}

TEST_F(WorkerReapBeside, HoldsItsLastStartsThatEndLaterApart) {
  left_by_bob(2);
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "RETRYCOUNT", 4, "JUSTID");
  std::thread finisher;
  std::vector<std::int64_t> pending_then;
  ConsumerWorker worker{
      stream(), on_demand(), [&](const Delivery& delivery) {
        pending_then.push_back(RawClient{server().options()}("XPENDING", "s", "g")[0].integer);
        if (delivery.attempt == 5) {
          finisher = std::thread{[completion = delivery.defer()]() mutable { completion.ack(); }};
        }
      }};
  worker.reap_idle_pending();
  finisher.join();
  EXPECT_THAT(pending_then, ::testing::ElementsAre(2, 1));
}

}  // namespace
}  // namespace millrace::test
