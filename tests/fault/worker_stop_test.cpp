#include <millrace/worker_group.hpp>

#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <future>
#include <iterator>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class WorkerStop : public WorkerTest {
 protected:
  /// A read of this worker ends by itself long after any test.
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 10min;
    return patient;
  }

  /// Fails the test if `stop` takes longer than any but a faulty stop does.
  template <typename Stop>
  void takes_no_time(Stop&& stop, milliseconds limit = 5s) {
    const auto started = Clock::now();
    stop();
    EXPECT_LT(Clock::now() - started, limit);
  }
};

TEST_F(WorkerStop, OfAnIdleWorkerDoesNotWaitForItsRead) {
  std::vector<milliseconds::rep> micros;
  for (std::uint64_t i = 0; i < 50; ++i) {
    ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
    worker.start();
    ASSERT_TRUE(blocked());
    // One thread looks at the stream twice when it has a connection, the other one once.
    ASSERT_TRUE(wait_until([&] { return calls_of("xinfo|stream") == 3 * (i + 1); }));
    const auto started = Clock::now();
    worker.stop();
    micros.push_back(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - started).count());
    EXPECT_EQ(worker.state(), WorkerState::kStopped);
  }
  std::sort(micros.begin(), micros.end());
  std::printf("50 stops: median %ld us, longest %ld us\n", static_cast<long>(micros[25]),
              static_cast<long>(micros.back()));
  RecordProperty("median_us", std::to_string(micros[25]));
  EXPECT_LT(micros.back(), 5'000'000);
  // A read that was about to be sent is unblocked a second time.
  EXPECT_GE(calls_of("client|unblock"), 50U) << "no connection had to be broken off";
}

TEST_F(WorkerStop, WorksWithoutThePermissionToUnblock) {
  raw()("ACL", "SETUSER", "default", "-client|unblock");
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  takes_no_time([&] { worker.stop(); });
  EXPECT_EQ(worker.state(), WorkerState::kStopped);

  // What the server was told to wait for is over: nothing is delivered to nobody.
  ASSERT_TRUE(blocked(0));
  append_ids(1);
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(consumers(), std::vector<std::string>{});
}

TEST_F(WorkerStop, WorksWithoutThePermissionToAskForItsConnectionsNumber) {
  raw()("ACL", "SETUSER", "default", "-client");
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  takes_no_time([&] { worker.stop(); });
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
}

TEST_F(WorkerStop, GivesBackWhatItsReadBroughtUnseenWhereItMayNotUnblock) {
  raw()("ACL", "SETUSER", "default", "-client|unblock");
  append_ids(1);
  orphan("alice");  // from an earlier life: nobody knows whether it was started
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions unnamed = patient();
  unnamed.consumer = {};
  ConsumerWorker worker{stream(proxy.options()), unnamed, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());
  proxy.delay_replies(1h);
  append_ids(1, 1);
  ASSERT_TRUE(wait_until([&] { return pending() == 2; })) << "its reply is on its way for long";
  proxy.delay_replies(0ms);
  StopReport report;
  takes_no_time([&] { report = worker.stop(); });
  EXPECT_EQ(report.released, (Ids{{2, 0}}));
  EXPECT_EQ(deliveries({2, 0}), 0);
  EXPECT_EQ(deliveries({1, 0}), 1) << "that was not its own";

  WorkerOptions peers = options();
  peers.consumer = "bob";
  peers.min_idle = 1h;
  peers.block = 100ms;
  ConsumerWorker peer{stream(), peers, journal.handler()};
  peer.start();
  ASSERT_TRUE(journal.wait_for(Ids{{2, 0}}));
  EXPECT_EQ(journal.size(), 1U);
  EXPECT_EQ(journal.calls()[0].attempt, 1U);
}

TEST_F(WorkerStop, LosesNoTimeOverWhatIsAppendedInThatMomentWhereItMayNotUnblock) {
  raw()("ACL", "SETUSER", "default", "-client|unblock");
  Journal journal;
  Ids ids;
  for (std::uint64_t i = 0; i < 20; ++i) {
    WorkerOptions unnamed = patient();
    unnamed.consumer = {};
    ConsumerWorker worker{stream(), unnamed, journal.handler()};
    worker.start();
    ASSERT_TRUE(blocked());
    std::thread stopping{[&] { worker.stop(); }};
    for (const StreamId id : append_ids(5, 5 * i)) ids.push_back(id);
    stopping.join();
  }
  WorkerOptions peers = options();
  peers.min_idle = 1h;
  peers.block = 100ms;
  ConsumerWorker peer{stream(), peers, journal.handler()};
  peer.start();
  EXPECT_TRUE(journal.wait_for(ids)) << "long before they have been idle for min_idle";
  EXPECT_EQ(journal.size(), ids.size());
  for (const Journal::Call& call : journal.calls()) EXPECT_EQ(call.attempt, 1U) << call.id;
}

TEST_F(WorkerStop, BreaksOffAConnectionWhoseEndDoesNotGetThroughWhereItMayNotUnblock) {
  raw()("ACL", "SETUSER", "default", "-client");
  Proxy proxy{server()};
  ConnectionOptions options = proxy.options();
  options.command_timeout = 300ms;
  ConsumerWorker worker{stream(options), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  proxy.stall();
  takes_no_time([&] { worker.stop(); }, 15s);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
}

TEST_F(WorkerStop, TakesANegativeDrainForNone) {
  append_ids(1);
  Gate gate;
  ConsumerWorker worker{stream(), patient(), [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  for (const milliseconds drain : {-1ms, milliseconds{-1h}, milliseconds::min()}) {
    takes_no_time([&] { EXPECT_EQ(worker.stop(drain).abandoned, (Ids{{1, 0}})); });
  }
  gate.open();
  worker.stop(kGenerous);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);

  WorkerGroup workers{stream(), patient(), 2, [](const Delivery&) {}};
  workers.start();
  ASSERT_TRUE(workers.wait_ready(kGenerous));
  takes_no_time([&] { workers.stop(milliseconds::min()); });
}

TEST_F(WorkerStop, UnblocksItsReadAlthoughConnectionsWereLostBefore) {
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  const std::size_t connected = heard().connected();
  kill_clients();
  ASSERT_TRUE(wait_until([&] { return heard().connected() > connected; }));
  ASSERT_TRUE(blocked());
  takes_no_time([&] { worker.stop(); });
  EXPECT_GE(calls_of("client|unblock"), 1U);
  EXPECT_EQ(consumers(), std::vector<std::string>{});
}

TEST_F(WorkerStop, WaitsForAServerThatSaysNothingForItsTimeoutAlone) {
  ConsumerWorker worker{stream(impatient(300ms)), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  server().pause();
  takes_no_time([&] { worker.stop(); }, 15s);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  server().resume();
}

TEST_F(WorkerStop, EndsAnAttemptToConnectAtOnce) {
  Proxy proxy{server()};
  proxy.stall();  // it accepts, and that is all
  ConsumerWorker worker{stream(proxy.options()), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return proxy.accepted() >= 2; })) << "both threads are waiting";
  takes_no_time([&] { worker.stop(); });
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_EQ(heard().connected(), 0U);
}

TEST_F(WorkerStop, EndsAPauseBetweenAttemptsAtOnce) {
  server().stop();
  WorkerOptions slow = patient();
  slow.reconnect_min = slow.reconnect_max = 1h;
  ConsumerWorker worker{stream(), slow, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
  takes_no_time([&] { worker.stop(); });
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
}

TEST_F(WorkerStop, EndsAWorkerThatNeverHadAServer) {
  server().stop();
  const auto open_files = [] {
    const std::filesystem::directory_iterator files{"/proc/self/fd"};
    return std::distance(begin(files), end(files));
  };
  const auto before = open_files();
  for (int i = 0; i < 20; ++i) {
    ConsumerWorker worker{stream(impatient()), patient(), [](const Delivery&) {}};
    worker.start();
    // The later, the more often both threads have tried.
    const auto until = Clock::now() + i * std::chrono::milliseconds{5};
    ASSERT_TRUE(wait_until([&] { return Clock::now() >= until; }));
    takes_no_time([&] { worker.stop(); });
    EXPECT_EQ(worker.state(), WorkerState::kStopped);
    EXPECT_EQ(worker.stats().in_flight, 0U);
  }
  EXPECT_EQ(open_files(), before);
  EXPECT_EQ(heard().connected(), 0U);
}

TEST_F(WorkerStop, EndsAPausedWorkerAtOnce) {
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.pause();
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kPaused; }));
  takes_no_time([&] { worker.stop(); });
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
}

TEST_F(WorkerStop, NeedNotComeBeforeTheDestructorInWhateverState) {
  const auto destroyed = [&](auto&& bring_about) {
    auto worker = std::make_unique<ConsumerWorker>(stream(), patient(), [](const Delivery&) {});
    bring_about(*worker);
    takes_no_time([&] { worker.reset(); });
  };
  const auto comes_to = [](ConsumerWorker& worker, WorkerState state) {
    EXPECT_TRUE(wait_until([&] { return worker.state() == state; }));
  };
  destroyed([](ConsumerWorker&) {});
  destroyed([](ConsumerWorker& worker) { worker.request_stop(); });
  destroyed([](ConsumerWorker& worker) { worker.start(); });
  destroyed([&](ConsumerWorker& worker) {
    worker.start();
    comes_to(worker, WorkerState::kRunning);
  });
  destroyed([&](ConsumerWorker& worker) {
    worker.pause();
    worker.start();
    comes_to(worker, WorkerState::kPaused);
  });
  destroyed([&](ConsumerWorker& worker) {
    worker.start();
    worker.stop();
    comes_to(worker, WorkerState::kStopped);
  });
  server().stop();
  destroyed([&](ConsumerWorker& worker) {
    worker.start();
    comes_to(worker, WorkerState::kDegraded);
  });
}

TEST_F(WorkerStop, BeforeAStartMakesTheStartImpossible) {
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  const StopReport report = worker.stop();
  EXPECT_EQ(report.finished, 0U);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_THROW(worker.start(), InvalidArgument);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
  EXPECT_FALSE(worker.wait_ready(kGenerous));
}

TEST_F(WorkerStop, OfOneThatWasAskedToStopBeforeItsStartWorksToo) {
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.request_stop();
  EXPECT_THROW(worker.start(), InvalidArgument);
  worker.stop();
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
}

TEST_F(WorkerStop, CannotBeFollowedByAnotherStart) {
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.start();
  EXPECT_THROW(worker.start(), InvalidArgument) << "not twice either";
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.stop();
  EXPECT_THROW(worker.start(), InvalidArgument);
  EXPECT_EQ(worker.state(), WorkerState::kStopped);
}

TEST_F(WorkerStop, MayBeAskedForAgainAndFromManyThreads) {
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(10)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      worker.stop();
      EXPECT_EQ(worker.state(), WorkerState::kStopped);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(worker.stop().abandoned.empty());
  EXPECT_EQ(pending(), 0);
}

TEST_F(WorkerStop, IsRefusedFromAHandlerWhichMayAskForIt) {
  append_ids(1);
  std::promise<bool> refused;
  ConsumerWorker* self = nullptr;
  ConsumerWorker worker{stream(), patient(), [&](const Delivery&) {
                          bool was_refused = false;
                          try {
                            self->stop();
                          } catch (const InvalidArgument&) {
                            was_refused = true;
                          }
                          self->request_stop();
                          refused.set_value(was_refused);
                        }};
  self = &worker;
  worker.start();
  EXPECT_TRUE(refused.get_future().get());
  EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kStopped; }));
  EXPECT_EQ(pending(), 0) << "what asked for the stop was done";
}

TEST_F(WorkerStop, MayComeAtAnyTimeOfALife) {
  // The later, the more has happened: from before the connection to well after the first entries.
  append_ids(50);
  for (int i = 0; i < 40; ++i) {
    Journal journal;
    {
      ConsumerWorker worker{stream(), patient(), journal.handler()};
      worker.start();
      const auto until = Clock::now() + i * std::chrono::microseconds{250};
      while (Clock::now() < until) {
      }
    }  // without a stop()
    EXPECT_EQ(journal.repeated(), Ids{});
  }
  Journal rest;
  ConsumerWorker worker{stream(), patient(), rest.handler()};
  worker.start();
  EXPECT_TRUE(rest.wait_for(append_ids(1, 50)));
  EXPECT_TRUE(nothing_is_pending()) << "nothing that was delivered is left behind";
}

TEST_F(WorkerStop, OfTenAtOnceLosesNothing) {
  Journal journal;
  std::vector<std::thread> threads;
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&, i] {
      WorkerOptions mine = patient();
      mine.consumer = fmt::format("worker-{}", i);
      ConsumerWorker worker{stream(), mine, journal.handler()};
      worker.start();
      EXPECT_TRUE(worker.wait_ready(kGenerous));
      worker.stop();
    });
  }
  const Ids ids = append_ids(200);
  for (std::thread& thread : threads) thread.join();

  // What is still pending was given back. (A worker whose entries a peer took only after its stop
  // still has its consumer: it owned something then.)
  const RawReply left = raw()("XPENDING", "s", "g", "IDLE", 3'600'000, "-", "+", 1000);
  EXPECT_EQ(static_cast<std::int64_t>(left.elements.size()), pending());

  ConsumerWorker last{stream(), patient(), journal.handler()};
  last.start();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerStop, DoesNotKeepTheProcessorBusyWhileAHandlerRuns) {
  append_ids(1);
  Gate gate;
  WorkerOptions restless = options();
  restless.min_idle = 150ms;  // a third of it is how often the group is looked at
  restless.reconnect_min = restless.reconnect_max = 1ms;
  ConsumerWorker worker{stream(impatient()), restless, [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  server().kill();
  ASSERT_TRUE(wait_until([&] {
    return heard().text().find("cannot connect") != std::string::npos;
  })) << heard().text();
  EXPECT_EQ(worker.stop(0ms).abandoned, (Ids{{1, 0}}));

  const std::clock_t before = std::clock();
  const auto until = Clock::now() + 1s;
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= until; }));
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 2);
  gate.open();
}

}  // namespace
}  // namespace millrace::test
