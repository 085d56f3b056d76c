#include "reap_on_demand_test.hpp"
#include "support/proxy.hpp"

#include <future>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

using WorkerReapOnDemand = ReapOnDemandTest;

TEST_F(WorkerReapOnDemand, WorksWithoutAStart) {
  const Ids ids = left_by_bob(40);
  raw()("XDEL", "s", "7-0", "9-0");
  Journal journal;
  ConsumerWorker worker{
      stream(), on_demand(), journal.handler([](const Delivery& delivery) {
        return delivery.entry.id() == StreamId{1, 0} ? Verdict::retry() : Verdict::ack();
      })};
  const ReapReport report = worker.reap_idle_pending();
  EXPECT_EQ(report.claimed, 38U);
  EXPECT_EQ(report.processed, 37U) << "one failed";
  EXPECT_EQ(report.deleted_ids, (Ids{{7, 0}, {9, 0}}));
  EXPECT_FALSE(report.error.has_value());
  EXPECT_EQ(journal.size(), 38U);
  EXPECT_EQ(pending(), 1);
  EXPECT_EQ(worker.state(), WorkerState::kCreated);

  const ReapReport again = worker.reap_idle_pending();
  EXPECT_EQ(again.claimed, 0U);
  EXPECT_EQ(again.processed, 0U);
}

TEST_F(WorkerReapOnDemand, HandlesTheEntriesOfOneKeyInBatchesOneAfterAnother) {
  left_by_bob(6);
  WorkerOptions options = on_demand();
  options.key = [](const Entry&) { return std::string{"one"}; };
  std::vector<std::size_t> sizes;
  ConsumerWorker worker{stream(), options, BatchHandler{[&](std::span<const Delivery> batch) {
                          sizes.push_back(batch.size());
                          return Verdict::ack();
                        }}};
  EXPECT_EQ(worker.reap_idle_pending().processed, 6U);
  EXPECT_EQ(sizes, (std::vector<std::size_t>(6, 1)));
  EXPECT_EQ(pending(), 0);
}

TEST_F(WorkerReapOnDemand, DoesNotWaitForARetryThatNobodyMakes) {
  left_by_bob(3);
  WorkerOptions options = on_demand();
  options.key = [](const Entry&) { return std::string{"one"}; };
  options.retry_backoff = 10ms;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                          return delivery.attempt == 2 ? Verdict::retry() : Verdict::ack();
                        })};
  const ReapReport report = worker.reap_idle_pending();
  const auto reaped_at = std::chrono::steady_clock::now();
  EXPECT_EQ(report.claimed, 3U);
  EXPECT_EQ(report.processed, 0U);
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}})) << "the others are behind it";
  EXPECT_EQ(worker.stats().in_flight, 0U) << "all of them are the group's again";
  EXPECT_EQ(pending(), 3);
  // A retry that is not due is left alone.
  EXPECT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() > reaped_at + 20ms; }));
  make_idle({{1, 0}, {2, 0}, {3, 0}}, "alice");
  EXPECT_EQ(worker.reap_idle_pending().claimed, 3U);
  EXPECT_EQ(journal.calls_for({1, 0}).back().attempt, 3U);
}

TEST_F(WorkerReapOnDemand, IsRefusedFromAHandlerAndAfterAStop) {
  append_ids(1);
  std::promise<bool> refused;
  ConsumerWorker* self = nullptr;
  ConsumerWorker worker{stream(), on_demand(), [&](const Delivery&) {
                          try {
                            self->reap_idle_pending();
                            refused.set_value(false);
                          } catch (const InvalidArgument&) {
                            refused.set_value(true);
                          }
                        }};
  self = &worker;
  worker.start();
  EXPECT_TRUE(refused.get_future().get());
  worker.stop();
  EXPECT_THROW(worker.reap_idle_pending(), InvalidArgument);
}

TEST_F(WorkerReapOnDemand, IsRefusedFromTheHandlerOfAnotherWorkerThatIsInsideItsOwn) {
  append_ids(1);
  orphan("bob");
  make_idle({{1, 0}});
  std::promise<bool> refused;
  ConsumerWorker* outer = nullptr;
  ConsumerWorker* inner = nullptr;
  ConsumerWorker second{stream(), on_demand(), [&](const Delivery&) {
                          try {
                            outer->reap_idle_pending();
                            refused.set_value(false);
                          } catch (const InvalidArgument&) {
                            refused.set_value(true);
                          }
                        }};
  ConsumerWorker first{stream(), on_demand(), [&](const Delivery&) {
                         make_idle({{1, 0}});
                         inner->reap_idle_pending();
                       }};
  outer = &first;
  inner = &second;
  EXPECT_EQ(first.reap_idle_pending().claimed, 1U);
  EXPECT_TRUE(refused.get_future().get());
}

TEST_F(WorkerReapOnDemand, CallsTheHandlerOneAtATimeBesideTheLoop) {
  const Ids idle = left_by_bob(300);
  Journal journal;
  ConsumerWorker worker{stream(), on_demand(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));

  std::vector<std::thread> reapers;
  std::atomic<std::size_t> processed{0};
  for (int i = 0; i < 4; ++i) {
    reapers.emplace_back([&] { processed += worker.reap_idle_pending().processed; });
  }
  const Ids fresh = append_ids(300, 300);
  for (std::thread& reaper : reapers) reaper.join();

  EXPECT_TRUE(journal.wait_for(idle));
  EXPECT_TRUE(journal.wait_for(fresh));
  EXPECT_EQ(processed, 300U);
  EXPECT_EQ(journal.most_at_once(), 1U);
  EXPECT_EQ(journal.overlapping(), std::set<StreamId>{});
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerReapOnDemand, LeavesWhatTheLoopHolds) {
  const Ids ids = append_ids(4);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), on_demand(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  make_idle(ids, "alice");

  const ReapReport report = worker.reap_idle_pending();
  EXPECT_EQ(report.claimed, 0U) << "one runs and three wait";
  gate.open();
  EXPECT_TRUE(wait_until([&] { return heard().acknowledged().size() == 4; }));
  EXPECT_EQ(journal.repeated(), Ids{});
}

TEST_F(WorkerReapOnDemand, HasItsEntriesLeftAloneByTheLoop) {
  left_by_bob(1);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), on_demand(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  auto reap = std::async(std::launch::async, [&] { return worker.reap_idle_pending(); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));

  // The group is set back: the loop is given 1-0 a second time, and a lost connection a third.
  raw()("XGROUP", "SETID", "s", "g", "0");
  append_ids(1, 1);
  ASSERT_TRUE(wait_until([&] { return deliveries({2, 0}) == 1; }));
  kill_clients();
  gate.open();
  EXPECT_EQ(reap.get().claimed, 1U);
  EXPECT_TRUE(journal.wait_for(append_ids(1, 2)));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {2, 0}, {3, 0}}));
}

TEST_F(WorkerReapOnDemand, ReportsWhatCameBeforeAnError) {
  left_by_bob(12);
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions small_pages = on_demand();
  small_pages.prefetch = 4;
  ConsumerWorker worker{stream(proxy.options()), small_pages,
                        journal.handler([&](const Delivery& delivery) {
                          // The next is that of 7-0: with it ends the second page.
                          if (delivery.entry.id() == StreamId{6, 0}) proxy.lose_request("EVALSHA");
                          return Verdict::ack();
                        })};
  const ReapReport report = worker.reap_idle_pending();
  ASSERT_TRUE(report.error.has_value());
  EXPECT_EQ(report.claimed, 8U);
  EXPECT_EQ(report.processed, 4U) << "the first page";
  EXPECT_EQ(journal.size(), 6U);
}

TEST_F(WorkerReapOnDemand, AcknowledgesLaterWhatItCouldNotAcknowledge) {
  left_by_bob(3);
  Proxy proxy{server()};
  Journal journal;
  proxy.lose_request("XACK\r\n");
  ConsumerWorker worker{stream(proxy.options()), on_demand(), journal.handler()};
  const ReapReport report = worker.reap_idle_pending();
  ASSERT_TRUE(report.error.has_value()) << "the acknowledgement is not repeated by itself";
  EXPECT_EQ(report.processed, 0U);
  EXPECT_EQ(pending(), 3);

  worker.reap_idle_pending();
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(journal.repeated(), Ids{}) << "they had succeeded";
}

TEST_F(WorkerReapOnDemand, IsLetFinishByAStopAndGivesBackWhatItHasNotStarted) {
  left_by_bob(3);
  Gate gate;
  Journal journal;
  std::atomic<bool> told{false};
  ConsumerWorker worker{stream(), on_demand(), journal.handler([&](const Delivery& delivery) {
                          gate.pass();
                          told = delivery.stop.stop_requested();
                          return Verdict::ack();
                        })};
  auto reap = std::async(std::launch::async, [&] { return worker.reap_idle_pending(); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_EQ(worker.stop(0ms).abandoned, (Ids{{1, 0}}));
  gate.open();
  const StopReport report = worker.stop(kGenerous);
  EXPECT_EQ(report.finished, 1U);
  EXPECT_EQ(report.released, (Ids{{2, 0}, {3, 0}}));
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_TRUE(told) << "it was abandoned before it came back";

  const ReapReport reaped = reap.get();
  EXPECT_EQ(reaped.claimed, 3U);
  EXPECT_EQ(reaped.processed, 1U);
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}}));
  EXPECT_EQ(deliveries({2, 0}), 1) << "as bob had left it";
  WorkerOptions carol = on_demand();
  carol.consumer = "carol";
  ConsumerWorker peer{stream(), carol, journal.handler()};
  EXPECT_EQ(peer.reap_idle_pending().processed, 2U) << "at once";
}

TEST_F(WorkerReapOnDemand, IsWaitedForByAStopAndTakesNothingMore) {
  left_by_bob(3);
  Gate gate;
  Journal journal;
  WorkerOptions one = on_demand();
  one.prefetch = 1;
  ConsumerWorker worker{stream(), one, journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  auto reap = std::async(std::launch::async, [&] { return worker.reap_idle_pending(); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  auto stop = std::async(std::launch::async, [&] { return worker.stop(kGenerous); });
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDraining; }));
  EXPECT_EQ(stop.wait_for(100ms), std::future_status::timeout);
  EXPECT_THROW(worker.reap_idle_pending(), InvalidArgument);

  gate.open();
  const StopReport report = stop.get();
  EXPECT_EQ(report.finished, 1U);
  EXPECT_EQ(report.abandoned, Ids{});
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_EQ(reap.get().claimed, 1U) << "the pages that follow are not taken";
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}}));
  EXPECT_EQ(owner({2, 0}), "bob");
  EXPECT_EQ(consumers(), (std::vector<std::string>{"bob"})) << "alice owns nothing";
}

TEST_F(WorkerReapOnDemand, LeavesNoConsumerBehindThatOwnsNothing) {
  const Ids ids = append_ids(2);
  orphan("bob");
  for (const bool stopped : {true, false}) {
    make_idle({ids[stopped ? 0 : 1]});
    auto worker = std::make_unique<ConsumerWorker>(stream(), on_demand(), [](const Delivery&) {});
    EXPECT_EQ(worker->reap_idle_pending().processed, 1U);
    EXPECT_EQ(consumers(), (std::vector<std::string>{"alice", "bob"}));
    if (stopped) {
      worker->stop();
      EXPECT_EQ(worker->state(), WorkerState::kStopped);
      EXPECT_EQ(consumers(), (std::vector<std::string>{"bob"}));
    }
    worker.reset();
    EXPECT_EQ(consumers(), (std::vector<std::string>{"bob"})) << stopped;
  }
}

TEST_F(WorkerReapOnDemand, LeavesAConsumerBehindThatOwnsPendingEntries) {
  left_by_bob(1);
  {
    ConsumerWorker worker{stream(), on_demand(),
                          [](const Delivery&) { return Verdict::leave_pending(); }};
    worker.reap_idle_pending();
  }
  EXPECT_EQ(owner({1, 0}), "alice") << "removing the consumer would forget the entry";
}

TEST_F(WorkerReapOnDemand, AcknowledgesAtTheStopWhatItCouldNotAcknowledge) {
  left_by_bob(3);
  Proxy proxy{server()};
  proxy.lose_request("XACK\r\n");
  ConsumerWorker worker{stream(proxy.options()), on_demand(), [](const Delivery&) {}};
  ASSERT_TRUE(worker.reap_idle_pending().error.has_value());
  EXPECT_EQ(pending(), 3);
  worker.stop();
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(consumers(), (std::vector<std::string>{"bob"}));
}

TEST_F(WorkerReapOnDemand, StartsNothingOfTheLoopWhoseTurnComesAfterTheStop) {
  left_by_bob(1);
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), on_demand(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  auto reap = std::async(std::launch::async, [&] { return worker.reap_idle_pending(); });
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  append_ids(1, 1);
  ASSERT_TRUE(wait_until([&] { return worker.stats().delivered == 2; }));
  worker.request_stop();
  gate.open();
  EXPECT_EQ(worker.stop(kGenerous).released, (Ids{{2, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}}));
  EXPECT_EQ(deliveries({2, 0}), 0);
}

TEST_F(WorkerReapOnDemand, SaysSoWhereThereIsNoGroup) {
  Journal journal;
  ConsumerWorker worker{stream(), on_demand(), journal.handler()};
  const ReapReport report = worker.reap_idle_pending();
  ASSERT_TRUE(report.error.has_value());
  EXPECT_EQ(report.error->code(), Error::Code::kNoGroup);
}

}  // namespace
}  // namespace millrace::test
