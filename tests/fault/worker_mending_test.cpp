#include "worker_test.hpp"

#include <atomic>
#include <functional>
#include <string>

namespace millrace::test {
namespace {

/// Ways in which the entry that was read last leaves the stream.
struct Leaving {
  std::string name;
  std::function<void(RawClient&)> happen;
};

class WorkerGroupAfter : public WorkerTest, public ::testing::WithParamInterface<Leaving> {};

TEST_P(WorkerGroupAfter, IsMadeAgainWhereItHadReadTo) {
  Journal journal;
  WorkerOptions often = options();
  often.min_idle = 1h;
  often.lease_renew_every = 50ms;  // the group is looked at as often
  often.block = 50ms;
  ConsumerWorker worker{stream(), often, journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(5)));
  ASSERT_TRUE(nothing_is_pending());
  const auto looks = calls_of("xinfo|stream");
  ASSERT_TRUE(wait_until([&] { return calls_of("xinfo|stream") >= looks + 2; }));

  GetParam().happen(raw());
  raw()("XGROUP", "DESTROY", "s", "g");
  EXPECT_TRUE(journal.wait_for(append_ids(3, 5)));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.size(), 8U) << "nothing twice";
  EXPECT_EQ(heard().recreated(), (Ids{{5, 0}}));
}

INSTANTIATE_TEST_SUITE_P(
    TheLast, WorkerGroupAfter,
    ::testing::Values(Leaving{"WasDeleted", [](RawClient& raw) { raw("XDEL", "s", "5-0"); }},
                      Leaving{"WasTrimmed",
                              [](RawClient& raw) { raw("XTRIM", "s", "MAXLEN", "=", 0); }}),
    [](const auto& leaving) { return leaving.param.name; });

class WorkerWithoutReplicas : public WorkerTest {};

TEST_F(WorkerWithoutReplicas, WaitsUntilTheServerWritesAgainAndLosesNothing) {
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.block = 100ms;
  options.reconnect_min = 1ms;
  options.reconnect_max = 50ms;
  Journal journal;
  ConsumerWorker worker{
      stream(), options, journal.handler([&](const Delivery& delivery) {
        // From here on every write is refused, XACK and XREADGROUP among them.
        if (delivery.entry.id() == StreamId{2, 0}) {
          EXPECT_EQ(RawClient{server().options()}("CONFIG", "SET", "min-replicas-to-write", 1),
                    "+OK");
        }
        return Verdict::ack();
      })};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  append_ids(2);
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
  EXPECT_TRUE(wait_until([&] { return heard().text().find("NOREPLICAS") != std::string::npos; }));
  EXPECT_GE(pending(), 1) << "2-0 cannot be acknowledged";

  raw()("CONFIG", "SET", "min-replicas-to-write", 0);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_TRUE(journal.wait_for(append_ids(3, 2)));
  EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kRunning; }));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.repeated(), Ids{}) << "its success was kept";
  EXPECT_EQ(worker.stats().leases_lost, 0U);
  EXPECT_LE(heard().lines().size(), 10U) << heard().text();
}

}  // namespace
}  // namespace millrace::test
