#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <functional>
#include <future>
#include <sstream>
#include <vector>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class WorkerGroupLoss : public WorkerTest {
 protected:
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 10min;
    return patient;
  }

  /// Commands that the worker sent, those that the server refused to carry out included. Our own
  /// questions (INFO) are none of them.
  std::uint64_t commands_of_the_worker() {
    std::uint64_t sent = 0;
    std::istringstream lines{raw()("INFO", "commandstats").text};
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("cmdstat_x") && !line.starts_with("cmdstat_eval")) continue;
      for (const std::string_view count : {":calls=", ",rejected_calls="}) {
        const auto at = line.find(count);
        if (at != std::string::npos) sent += std::stoull(line.substr(at + count.size()));
      }
    }
    return sent;
  }
};

/// Ways in which a group vanishes while its reader waits.
struct Loss {
  std::string name;
  std::function<void(RawClient&)> happen;
};

class WorkerGroupLossOfAnyKind : public WorkerGroupLoss,
                                 public ::testing::WithParamInterface<Loss> {};

TEST_P(WorkerGroupLossOfAnyKind, EndsInOneNewGroupThatReadsOn) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  const Ids before = append_ids(3);
  ASSERT_TRUE(journal.wait_for(before));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(blocked());

  GetParam().happen(raw());
  ASSERT_TRUE(wait_until([&] { return !heard().recreated().empty(); }));
  ASSERT_TRUE(blocked());
  const auto appended = Clock::now();
  const Ids after = append_ids(3, 10);
  EXPECT_TRUE(journal.wait_for(after));
  EXPECT_LT(Clock::now() - appended, 5s);
  EXPECT_EQ(heard().recreated().size(), 1U);
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
  EXPECT_EQ(worker.stats().reconnects, 0U);
  EXPECT_LE(heard().lines().size(), 3U) << heard().text();
  EXPECT_TRUE(nothing_is_pending());
}

INSTANTIATE_TEST_SUITE_P(
    , WorkerGroupLossOfAnyKind,
    ::testing::Values(Loss{"DEL", [](RawClient& raw) { raw("DEL", "s"); }},
                      Loss{"UNLINK", [](RawClient& raw) { raw("UNLINK", "s"); }},
                      Loss{"FLUSHALL", [](RawClient& raw) { raw("FLUSHALL"); }},
                      Loss{"RENAME", [](RawClient& raw) { raw("RENAME", "s", "elsewhere"); }},
                      Loss{"DESTROY", [](RawClient& raw) { raw("XGROUP", "DESTROY", "s", "g"); }}),
    [](const auto& loss) { return loss.param.name; });

TEST_F(WorkerGroupLoss, LosesNothingThatIsAppendedToANewStreamBeforeTheGroupIsMadeAgain) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(3, 100)));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(blocked());

  // Smaller ids than before, and all in one step: the worker never sees the stream missing.
  raw()("MULTI");
  raw()("FLUSHALL");
  for (const StreamId id : Ids{{1, 0}, {2, 0}, {3, 0}}) raw()("XADD", "s", id, "f", "v");
  raw()("EXEC");
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}}));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerGroupLoss, LosesNothingOfANewStreamAlthoughItSawNothingOfTheOldOne) {
  append_ids(1, 99);
  Journal journal;
  WorkerOptions from_now = patient();
  from_now.group_start = GroupStart::now();
  ConsumerWorker worker{stream(), from_now, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());
  raw()("MULTI");
  raw()("FLUSHALL");
  for (const StreamId id : Ids{{1, 0}, {2, 0}, {3, 0}}) raw()("XADD", "s", id, "f", "v");
  raw()("EXEC");
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}}));
}

TEST_F(WorkerGroupLoss, LosesNothingThatIsAppendedWhileItMayNotMakeTheGroup) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(3, 100)));
  ASSERT_TRUE(nothing_is_pending());

  raw()("ACL", "SETUSER", "default", "-xgroup|create");
  raw()("FLUSHALL");
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
  const Ids ids = append_ids(3);
  const auto commands = commands_of_the_worker();
  const auto until = Clock::now() + 3s;
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= until; }));
  EXPECT_LE(commands_of_the_worker() - commands, 6U) << "two a second at most";
  EXPECT_EQ(journal.size(), 3U);

  raw()("ACL", "SETUSER", "default", "+@all");
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kRunning; }));
  EXPECT_LE(heard().lines().size(), 10U) << heard().text();
  EXPECT_THAT(heard().text(), ::testing::HasSubstr("XGROUP CREATE")) << "names what is forbidden";
}

TEST_F(WorkerGroupLoss, GoesOnWhereAPeerMakesTheGroupThatItMayNotMake) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(3)));
  ASSERT_TRUE(nothing_is_pending());

  raw()("ACL", "SETUSER", "default", "-xgroup|create");
  raw()("XGROUP", "DESTROY", "s", "g");
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
  raw()("ACL", "SETUSER", "peer", "on", "nopass", "~*", "+@all");
  RawClient peer{server().options()};
  EXPECT_EQ(peer("AUTH", "peer", "any"), "+OK");
  EXPECT_EQ(peer("XGROUP", "CREATE", "s", "g", "3-0"), "+OK");
  EXPECT_TRUE(journal.wait_for(append_ids(2, 3)));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
  EXPECT_EQ(journal.size(), 5U);
}

TEST_F(WorkerGroupLoss, LosesNothingOfANewStreamThatHasTheIdThatItSawLast) {
  Journal journal;
  WorkerOptions often = options();
  often.min_idle = 600ms;  // the group is looked at three times in this
  often.reap_every = 0ms;
  ConsumerWorker worker{stream(), often, journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(5)));
  ASSERT_TRUE(nothing_is_pending());
  const auto looks = calls_of("xinfo|stream");
  ASSERT_TRUE(wait_until([&] { return calls_of("xinfo|stream") >= looks + 2; }));

  raw()("MULTI");
  raw()("FLUSHALL");
  for (const StreamId id : Ids{{2, 0}, {5, 0}, {6, 0}}) raw()("XADD", "s", id, "f", "v");
  raw()("EXEC");
  EXPECT_TRUE(journal.wait_for_calls(8)) << "2-0 and 5-0 are others than before";
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(heard().recreated(), Ids{{}});
}

TEST_F(WorkerGroupLoss, SaysLittleInTenSecondsWithDefaultOptionsAndReadsOn) {
  Journal journal;
  ConsumerWorker worker{
      stream(impatient()),
      {.group = "g", .group_start = GroupStart::beginning(), .observer = options().observer},
      journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(3)));
  ASSERT_TRUE(nothing_is_pending());

  raw()("FLUSHALL");
  const auto until = Clock::now() + 10s;
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= until; }));
  EXPECT_LE(heard().lines().size(), 10U) << heard().text();
  EXPECT_EQ(heard().recreated().size(), 1U);
  EXPECT_TRUE(journal.wait_for(append_ids(3, 10)));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
}

TEST_F(WorkerGroupLoss, RepeatsNothingThatWasDoneWhenTheGroupWasLastLookedAt) {
  Journal journal;
  WorkerOptions often = options();
  often.min_idle = 600ms;  // the group is looked at three times in this
  often.reap_every = 0ms;
  ConsumerWorker worker{stream(), often, journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(10)));
  ASSERT_TRUE(nothing_is_pending());
  const auto looks = calls_of("xinfo|stream");
  ASSERT_TRUE(wait_until([&] { return calls_of("xinfo|stream") >= looks + 2; }));

  raw()("XGROUP", "DESTROY", "s", "g");
  EXPECT_TRUE(journal.wait_for(append_ids(3, 10)));
  EXPECT_EQ(journal.size(), 13U) << "nothing twice";
  EXPECT_EQ(heard().recreated(), (Ids{{10, 0}}));
}

TEST_F(WorkerGroupLoss, DeliversAgainWhatWasPendingWhenTheGroupWasDestroyed) {
  Journal journal;
  WorkerOptions often = options();
  often.min_idle = 1h;
  often.block = 100ms;
  ConsumerWorker worker{stream(), often, journal.handler([](const Delivery& delivery) {
                          return delivery.entry.id() == StreamId{4, 0} && delivery.attempt == 1
                                     ? Verdict::leave_pending()
                                     : Verdict::ack();
                        })};
  // Pending for a peer, too: what is done again reaches back to the group's lowest pending entry.
  append_ids(3);
  raw()("XGROUP", "CREATE", "s", "g", "0");
  raw()("XREADGROUP", "GROUP", "g", "bob", "COUNT", 2, "STREAMS", "s", ">");
  raw()("XACK", "s", "g", "1-0");
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{3, 0}}));
  ASSERT_TRUE(worker.wait_ready(kGenerous));

  raw()("XGROUP", "DESTROY", "s", "g");
  EXPECT_TRUE(journal.wait_for(Ids{{2, 0}, {3, 0}}));
  EXPECT_TRUE(journal.calls_for({1, 0}).empty()) << "it was done";
}

TEST_F(WorkerGroupLoss, IsAFailureWhereItIsToldSo) {
  Journal journal;
  WorkerOptions strict = patient();
  strict.on_missing_group = OnMissingGroup::kFail;
  ConsumerWorker worker{stream(), strict, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());
  raw()("XGROUP", "DESTROY", "s", "g");

  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kFailed; }));
  ASSERT_TRUE(worker.failure().has_value());
  EXPECT_EQ(worker.failure()->code(), Error::Code::kNoGroup);
  EXPECT_EQ(raw()("XINFO", "GROUPS", "s"), "*0[]");
  EXPECT_FALSE(worker.wait_ready(kGenerous));
}

TEST_F(WorkerGroupLoss, IsNotHammeredAtWhereItComesAgainAndAgain) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());
  const auto end = Clock::now() + 2s;
  while (Clock::now() < end) {
    raw()("XGROUP", "DESTROY", "s", "g");
  }
  EXPECT_LE(calls_of("xgroup|create"), 60U);
  EXPECT_LE(heard().lines().size(), 60U);
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
}

TEST_F(WorkerGroupLoss, DropsAcknowledgementsForAStreamThatIsNoMore) {
  Proxy proxy{server()};
  Gate first;
  Gate second;
  Journal journal;
  WorkerOptions slow = patient();
  slow.concurrency = 2;
  ConnectionOptions options = proxy.options();
  options.command_timeout = 1s;
  ConsumerWorker worker{stream(proxy.options()), slow,
                        journal.handler([&](const Delivery& delivery) {
                          if (first.arrived() < 2) {
                            first.pass();
                          } else if (delivery.entry.id() == StreamId{1, 0}) {
                            second.pass();
                          }
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(blocked());
  append_ids(2);
  ASSERT_TRUE(first.wait_for_arrivals(2));
  ASSERT_TRUE(blocked());
  // Whether the acknowledgements arrived is known to nobody: a second later they are sent again.
  proxy.drop_reply_to("XACK");
  first.open();
  ASSERT_TRUE(wait_until([&] { return proxy.has_lost(); }));

  // In a stream with the same ids they would acknowledge what has not been handled.
  raw()("FLUSHALL");
  append_ids(2);
  ASSERT_TRUE(second.wait_for_arrivals(1));
  EXPECT_TRUE(wait_until([&] { return pending() < 2; })) << "2-0 has been done again";
  EXPECT_EQ(owner({1, 0}), "alice");
  second.open();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.size(), 4U);
}

TEST_F(WorkerGroupLoss, TakesNoEntryOfANewStreamForOneOfTheOldThatStillRuns) {
  append_ids(1);
  orphan("bob");
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "JUSTID");
  Gate gate;
  Journal journal;
  WorkerOptions on_demand = patient();
  on_demand.reap_every = 0ms;
  ConsumerWorker worker{stream(), on_demand, journal.handler([&](const Delivery&) {
                          if (gate.arrived() == 0) gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(blocked());
  auto reap = std::async(std::launch::async, [&] { return worker.reap_idle_pending(); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));

  // 1-0 of the old stream runs; 1-0 of the new one must neither be skipped nor acknowledged for it.
  raw()("FLUSHALL");
  ASSERT_TRUE(wait_until([&] { return !heard().recreated().empty(); }));
  append_ids(2);
  ASSERT_TRUE(wait_until([&] { return pending() > 0; }));
  gate.open();
  reap.get();
  EXPECT_TRUE(journal.wait_for_calls(3));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {1, 0}, {2, 0}}));
  EXPECT_TRUE(nothing_is_pending());
}

class WorkerWrongType : public WorkerGroupLoss {};

TEST_F(WorkerWrongType, EndsAWorkerThatReads) {
  Journal journal;
  WorkerOptions soon = options();
  soon.block = 200ms;  // Redis 7.0 and its like wake a reader; a server may as well not
  auto worker = std::make_unique<ConsumerWorker>(stream(), soon, journal.handler());
  worker->start();
  ASSERT_TRUE(journal.wait_for(append_ids(1)));
  ASSERT_TRUE(nothing_is_pending());
  raw()("SET", "s", "a string");

  ASSERT_TRUE(wait_until([&] { return worker->state() == WorkerState::kFailed; }));
  ASSERT_TRUE(worker->failure().has_value());
  EXPECT_EQ(worker->failure()->code(), Error::Code::kWrongType);
  EXPECT_THAT(worker->failure()->what(), ::testing::HasSubstr("'s'"));
  EXPECT_EQ(raw()("GET", "s"), R"("a string")") << "it is not touched";

  const auto started = Clock::now();
  worker->stop();
  EXPECT_EQ(worker->state(), WorkerState::kFailed);
  worker.reset();
  EXPECT_LT(Clock::now() - started, 5s);
}

TEST_F(WorkerWrongType, EndsAWorkerThatStarts) {
  raw()("SET", "s", "a string");
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  EXPECT_FALSE(worker.wait_ready(kGenerous));
  EXPECT_EQ(worker.state(), WorkerState::kFailed);
  EXPECT_EQ(worker.failure().value().code(), Error::Code::kWrongType);
  EXPECT_THROW(worker.reap_idle_pending(), InvalidArgument);
}

}  // namespace
}  // namespace millrace::test
