#include <millrace/worker_group.hpp>

#include "support/no_threads.hpp"
#include "worker_test.hpp"

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

namespace millrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Names = std::vector<std::string>;

class WorkersOfAGroup : public WorkerTest {
 protected:
  /// Reads that end by themselves long after any test, and leases that last as long.
  WorkerOptions patient(std::string consumer = "crew") {
    WorkerOptions patient = options();
    patient.consumer = std::move(consumer);
    patient.min_idle = 1h;
    patient.block = 10min;
    return patient;
  }
  /// What is idle is soon taken over, and a consumer that is no more is soon removed.
  WorkerOptions hasty(std::string consumer = "crew") {
    WorkerOptions hasty = patient(std::move(consumer));
    hasty.min_idle = 300ms;
    hasty.block.reset();
    hasty.reap_every = 100ms;
    hasty.max_deliveries = 1'000'000;
    return hasty;
  }
};

TEST_F(WorkersOfAGroup, HandleEachEntryOnceAmongThem) {
  const Ids ids = append_ids(400);
  Gate gate;
  Journal journal;
  WorkerGroup group{stream(), patient(), 4, journal.handler([&](const Delivery&) {
                      gate.pass();
                      return Verdict::ack();
                    })};
  group.start();
  ASSERT_TRUE(gate.wait_for_arrivals(4)) << "each of them has something";
  gate.open();
  ASSERT_TRUE(journal.wait_for(ids));
  ASSERT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.size(), 400U);
  EXPECT_THAT(journal.repeated(), IsEmpty());
  EXPECT_EQ(group.state(), WorkerState::kRunning);

  EXPECT_EQ(group.stats().succeeded, 400U);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < group.size(); ++i) {
    EXPECT_GT(group[i].stats().succeeded, 0U);
    sum += group[i].stats().succeeded;
  }
  EXPECT_EQ(sum, 400U);
  group.stop();
  EXPECT_EQ(group.state(), WorkerState::kStopped);
}

TEST_F(WorkersOfAGroup, CallAHandlerOfBatchesAsWell) {
  const Ids ids = append_ids(50);
  std::atomic<std::size_t> handled{0};
  WorkerGroup group{stream(), patient(), 2, BatchHandler{[&](std::span<const Delivery> batch) {
                      handled += batch.size();
                      return Verdict::ack();
                    }}};
  group.start();
  EXPECT_TRUE(wait_until([&] { return handled == ids.size(); }));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkersOfAGroup, CallAHandlerOfTheirOwnWhereOneIsMadeForEach) {
  append_ids(80);  // more than three of them hold
  std::atomic<std::size_t> handled{0}, at_once_in_one{0};
  Gate gate;
  WorkerGroup group{stream(), patient(), 4, [&] {
                      return [&, inside = std::make_shared<std::atomic<int>>(0)](const Delivery&) {
                        if (inside->fetch_add(1) > 0) ++at_once_in_one;
                        gate.pass();
                        inside->fetch_sub(1);
                        ++handled;
                      };
                    }};
  group.start();
  ASSERT_TRUE(gate.wait_for_arrivals(4)) << "four are called at once";
  gate.open();
  EXPECT_TRUE(wait_until([&] { return handled == 80; }));
  EXPECT_EQ(at_once_in_one, 0U) << "but none of them twice";
}

TEST_F(WorkersOfAGroup, EndAtOneDeadlineForAllAndReportWhatWasAbandoned) {
  const Ids ids = append_ids(8);
  WorkerOptions one_each = patient();
  one_each.prefetch = 1;
  Gate gate;
  std::atomic<std::size_t> told{0};
  WorkerGroup group{stream(), one_each, 8, [&](const Delivery& delivery) {
                      gate.pass();
                      if (delivery.stop.stop_requested()) ++told;
                    }};
  group.start();
  ASSERT_TRUE(gate.wait_for_arrivals(8));

  const auto started = std::chrono::steady_clock::now();
  const StopReport report = group.stop(2s);
  EXPECT_LT(std::chrono::steady_clock::now() - started, 8s) << "one after another, it were 16";
  EXPECT_EQ(report.abandoned, ids);
  EXPECT_EQ(report.finished, 0U);
  EXPECT_EQ(group.state(), WorkerState::kDraining);
  gate.open();
  EXPECT_TRUE(wait_until([&] { return told == 8; }));
  EXPECT_THAT(group.stop(kGenerous).abandoned, IsEmpty());
  EXPECT_EQ(group.state(), WorkerState::kStopped);
}

TEST_F(WorkersOfAGroup, ReportTogetherWhatTheyFinishedAndReleased) {
  const Ids ids = append_ids(30);
  WorkerOptions ten_each = patient();
  ten_each.prefetch = 10;
  Gate gate;
  Journal journal;
  WorkerGroup group{stream(), ten_each, 3, journal.handler([&](const Delivery&) {
                      gate.pass();
                      return Verdict::ack();
                    })};
  group.start();
  ASSERT_TRUE(gate.wait_for_arrivals(3));

  auto stopped = std::async(std::launch::async, [&] { return group.stop(kGenerous); });
  ASSERT_TRUE(wait_until([&] {
    return group[0].state() == WorkerState::kDraining &&
           group[1].state() == WorkerState::kDraining && group[2].state() == WorkerState::kDraining;
  })) << "all are told at once";
  gate.open();
  const StopReport report = stopped.get();
  EXPECT_EQ(report.finished, 3U);
  Ids all = report.released;
  EXPECT_EQ(all.size(), 27U);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  const Ids handled = journal.ids();
  all.insert(all.end(), handled.begin(), handled.end());
  EXPECT_THAT(all, ::testing::UnorderedElementsAreArray(ids));
  EXPECT_THAT(report.abandoned, IsEmpty());
}

TEST_F(WorkersOfAGroup, RefuseToBeStoppedByAHandlerBeforeAnyOfThemStops) {
  append_ids(3);
  WorkerOptions one_each = patient();
  one_each.prefetch = 1;
  std::optional<WorkerGroup> group;
  std::atomic<int> refused{0}, handled{0};
  Gate gate;
  const auto refuses = [&refused](auto&& call) {
    try {
      call();
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("request_stop() does not wait"));
      ++refused;
    }
  };
  group.emplace(stream(), one_each, 3, [&](const Delivery& delivery) {
    if (delivery.consumer == "crew-3" && refused == 0) {  // the last that is asked
      refuses([&] { group->stop(0ms); });
      refuses([&] { group->reap_idle_pending(); });
    } else {
      gate.pass();
    }
    if (++handled == 10) group->request_stop();
  });
  group->start();
  ASSERT_TRUE(wait_until([&] { return refused == 2; }));
  gate.open();
  ASSERT_TRUE(group->wait_ready(kGenerous)) << "all go on";
  EXPECT_EQ(group->state(), WorkerState::kRunning);
  append_ids(7, 3);
  EXPECT_TRUE(wait_until([&] { return group->state() == WorkerState::kStopped; }))
      << "what a handler may ask for";
  group->stop();
}

TEST_F(WorkersOfAGroup, GoOnWhereOneOfThemFails) {
  WorkerOptions named = hasty();
  Journal journal;
  Gate gate;
  std::atomic<std::uint64_t> held{0};
  WorkerGroup group{stream(), named, 3, journal.handler([&](const Delivery& delivery) {
                      if (delivery.consumer == "crew-2" && gate.arrived() == 0) {
                        held = delivery.entry.id().ms;
                        gate.pass();
                        return Verdict::retry();
                      }
                      return Verdict::ack();
                    })};
  group.start();
  ASSERT_TRUE(group.wait_ready(kGenerous));
  ASSERT_EQ(group.state(), WorkerState::kRunning);
  std::uint64_t appended = 0;
  for (; gate.arrived() == 0 && appended < 1'000; ++appended) {
    ASSERT_TRUE(wait_until([&] { return pending() == 0 || gate.arrived() > 0; }));
    append_ids(1, appended);
  }
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  {
    WorkerOptions taker = named;
    taker.consumer = "crew-2";
    ConsumerWorker newer{stream(), taker, journal.handler()};
    newer.pause();  // it takes the name, and nothing else
    newer.start();
    ASSERT_TRUE(wait_until([&] { return group[1].state() == WorkerState::kFailed; }));
    gate.open();
    const StreamId its{held, 0};
    EXPECT_TRUE(wait_until([&] { return journal.calls_for(its).size() > 1; }))
        << "the others take it over";
  }
  EXPECT_TRUE(wait_until([&] { return group.state() == WorkerState::kDegraded; }))
      << "that tells of it, but it is no end";
  ASSERT_TRUE(group.failure().has_value());
  EXPECT_THAT(group.failure()->what(), HasSubstr("a newer worker has taken"));
  EXPECT_THAT(group.failure()->what(), HasSubstr("crew-2"));
  EXPECT_FALSE(group.wait_ready(kGenerous)) << "and says so at once";

  EXPECT_TRUE(journal.wait_for(append_ids(20, appended)));
  EXPECT_TRUE(nothing_is_pending());
  group.stop();
  EXPECT_EQ(group.state(), WorkerState::kFailed);
}

TEST_F(WorkersOfAGroup, PauseAndGoOnTogether) {
  Journal journal;
  WorkerOptions soon = hasty();
  WorkerGroup group{stream(), soon, 3, journal.handler()};
  group.start();
  ASSERT_TRUE(group.wait_ready(kGenerous));
  group.pause();
  ASSERT_TRUE(wait_until([&] {
    return group[0].state() == WorkerState::kPaused && group[1].state() == WorkerState::kPaused &&
           group[2].state() == WorkerState::kPaused;
  }));
  EXPECT_EQ(group.state(), WorkerState::kPaused);
  const Ids ids = append_ids(30);
  EXPECT_FALSE(group.wait_ready(100ms));
  EXPECT_EQ(journal.size(), 0U);
  group.resume();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(group.wait_ready(kGenerous));
}

TEST_F(WorkersOfAGroup, ReapOnDemandWithoutAStart) {
  const Ids ids = append_ids(3);
  orphan("bob");
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "2-0", "3-0", "IDLE", 7'200'000, "JUSTID");
  Journal journal;
  WorkerGroup group{stream(), patient(), 2, journal.handler()};
  const ReapReport report = group.reap_idle_pending();
  EXPECT_EQ(report.claimed, 3U);
  EXPECT_EQ(report.processed, 3U);
  EXPECT_EQ(journal.ids(), ids);
}

#ifdef MILLRACE_TEST_HAS_NO_THREADS

/// Lets so many workers start, and then there are no more threads.
class FewThreads : public Observer {
 public:
  explicit FewThreads(int starts) : starts_{starts} {}
  void on_state(WorkerState /*from*/, WorkerState to) override {
    if (to == WorkerState::kStarting && starts_-- == 0) none_.emplace();
  }
  void end() { none_.reset(); }

 private:
  int starts_;
  std::optional<NoThreads> none_{};
};

TEST_F(WorkersOfAGroup, ThatGetNoThreadForOneOfThemAreStopped) {
  const auto few = std::make_shared<FewThreads>(2);
  WorkerOptions options = patient();
  options.observer = few;
  WorkerGroup group{stream(), options, 4, [](const Delivery&) {}};
  EXPECT_THROW(group.start(), std::system_error);
  few->end();
  EXPECT_EQ(group[0].state(), WorkerState::kStopped);
  EXPECT_EQ(group[1].state(), WorkerState::kStopped);
  EXPECT_EQ(group[2].state(), WorkerState::kFailed);
  EXPECT_EQ(group[3].state(), WorkerState::kStopped);
  EXPECT_EQ(group.state(), WorkerState::kFailed);
  EXPECT_TRUE(group.failure().has_value());
  EXPECT_THAT(consumers(), IsEmpty());
  EXPECT_THROW(group.start(), InvalidArgument);
}

#endif

TEST_F(WorkersOfAGroup, ThatAreStartedTwiceSaySoAndGoOn) {
  Journal journal;
  WorkerGroup group{stream(), patient(), 2, journal.handler()};
  group.start();
  EXPECT_THROW(group.start(), InvalidArgument);
  EXPECT_TRUE(journal.wait_for(append_ids(3)));
  EXPECT_TRUE(group.wait_ready(kGenerous));
}

class NamesOfWorkers : public WorkersOfAGroup {};

TEST_F(NamesOfWorkers, ThatWereGivenAreTheSameAtEachStart) {
  WorkerOptions named = patient();
  named.max_deliveries = 1'000'000;
  Ids all;
  for (std::uint64_t start = 0; start < 20; ++start) {
    Journal journal;
    // What stays pending keeps the name of its consumer at the stop.
    WorkerGroup group{stream(), named, 3,
                      journal.handler([](const Delivery&) { return Verdict::leave_pending(); })};
    group.start();
    const Ids ids = append_ids(3, 3 * start);
    ASSERT_TRUE(journal.wait_for(ids));
    group.stop();
    all.insert(all.end(), ids.begin(), ids.end());
    for (const std::string& name : consumers()) {
      EXPECT_THAT((Names{"crew-1", "crew-2", "crew-3"}), ::testing::Contains(name));
    }
  }
  EXPECT_LE(consumers().size(), 3U);
  EXPECT_EQ(pending(), 60);

  // What was left under a name is had by its successor, long before it is idle.
  Journal journal;
  WorkerGroup group{stream(), named, 3, journal.handler()};
  group.start();
  EXPECT_TRUE(journal.wait_for(all));
  EXPECT_TRUE(nothing_is_pending());
  group.stop();
  EXPECT_THAT(consumers(), IsEmpty());
}

TEST_F(NamesOfWorkers, ThatWereGeneratedAreRemovedByThoseThatLiveOnceTheyHoldNothing) {
  Ids all;
  for (std::uint64_t start = 0; start < 5; ++start) {
    Journal journal;
    WorkerGroup group{stream(), hasty(""), 2,
                      journal.handler([](const Delivery&) { return Verdict::leave_pending(); })};
    group.start();
    const Ids ids = append_ids(20, 20 * start);
    ASSERT_TRUE(journal.wait_for(ids));
    group.stop();
    all.insert(all.end(), ids.begin(), ids.end());
  }
  raw()("XGROUP", "CREATECONSUMER", "s", "g", "nobody");
  ASSERT_GE(consumers().size(), 6U);
  EXPECT_EQ(pending(), 100) << "none of them was removed with what it held";

  Journal journal;
  WorkerGroup group{stream(), hasty(""), 2, journal.handler()};
  group.start();
  Names names{group[0].consumer(), group[1].consumer()};
  std::sort(names.begin(), names.end());
  EXPECT_TRUE(wait_until([&] { return consumers() == names; }));
  EXPECT_TRUE(journal.wait_for(all)) << "what they held was taken over first";
  EXPECT_TRUE(nothing_is_pending());
}

}  // namespace
}  // namespace millrace::test
