#include "worker_test.hpp"

#include <ctime>
#include <future>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

class WorkerConcurrency : public WorkerTest {
 protected:
  WorkerOptions four() {
    WorkerOptions four = options();
    four.min_idle = 1h;
    four.block = 200ms;
    four.concurrency = 4;
    four.retry_backoff = 5ms;
    return four;
  }
};

TEST_F(WorkerConcurrency, RunsAsManyHandlersAtOnceAsItWasTold) {
  append_ids(40);
  Journal journal;
  Gate gate;
  ConsumerWorker worker{stream(), four(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(4));
  gate.open();
  ASSERT_TRUE(journal.wait_for_calls(40));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.most_at_once(), 4U);
  EXPECT_TRUE(journal.repeated().empty());
}

TEST_F(WorkerConcurrency, HoldsNoMoreThanPrefetchAndWhatRuns) {
  append_ids(100);
  Gate gate;
  ConsumerWorker worker{stream(), four(), [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(4));
  ASSERT_TRUE(wait_until([&] { return pending() == 20; }));
  EXPECT_TRUE(wait_until([&] { return worker.stats().in_flight == 20; }));
  gate.open();
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerConcurrency, StopsReadingAtSoManyBytes) {
  const std::string big(100'000, 'x');
  for (int i = 1; i <= 20; ++i)
    raw()("XADD", "s", StreamId{static_cast<std::uint64_t>(i), 0}, "f", big);
  WorkerOptions options = four();
  options.prefetch = 4;
  options.prefetch_bytes = 300'000;
  options.concurrency = 2;
  Gate gate;
  ConsumerWorker worker{stream(), options, [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(2));
  EXPECT_LE(worker.stats().queued_bytes, 700'100U) << "one reply may overshoot it";
  EXPECT_LT(worker.stats().in_flight, 8U);
  gate.open();
  EXPECT_TRUE(wait_until([&] { return worker.stats().succeeded == 20; }));
  EXPECT_TRUE(wait_until([&] { return worker.stats().queued_bytes == 0; }));
}

TEST_F(WorkerConcurrency, KeepsTheEntriesOfAKeyInOrder) {
  for (std::uint64_t i = 1; i <= 200; ++i) {
    raw()("XADD", "s", StreamId{i, 0}, "key", std::to_string(i % 7));
  }
  WorkerOptions options = four();
  options.key = [](const Entry& entry) { return std::string{entry.at("key")}; };
  std::mutex mutex;
  std::map<std::string, Ids> done;
  std::map<StreamId, int> failures;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          std::lock_guard lock{mutex};
                          const StreamId id = delivery.entry.id();
                          if (id.ms % 11 == 0 && failures[id]++ < 2) return Verdict::retry();
                          done[std::string{delivery.entry.at("key")}].push_back(id);
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().succeeded == 200; }));
  EXPECT_TRUE(nothing_is_pending());
  for (const auto& [key, ids] : done) {
    EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end())) << key;
  }
  EXPECT_TRUE(journal.overlapping().empty());
}

TEST_F(WorkerConcurrency, GivesBackWhatWasNotStartedAtAStopAndFinishesTheRest) {
  append_ids(60);
  Journal journal;
  Gate gate;
  ConsumerWorker worker{stream(), four(), journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(4));
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == 20; }));
  auto stop = std::async(std::launch::async, [&] { return worker.stop(kGenerous); });
  ASSERT_TRUE(wait_until([&] { return worker.stats().released == 16; })) << "before they return";
  gate.open();
  const StopReport report = stop.get();
  EXPECT_EQ(report.finished, 4U);
  EXPECT_EQ(report.released.size(), 16U);
  EXPECT_EQ(pending(), 16);

  WorkerOptions peer_options = four();
  peer_options.consumer = "bob";
  ConsumerWorker peer{stream(), peer_options, journal.handler()};
  peer.start();
  EXPECT_TRUE(journal.wait_for_calls(60));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_TRUE(journal.repeated().empty());
  for (const auto& call : journal.calls()) EXPECT_EQ(call.attempt, 1U) << call.id;
}

TEST_F(WorkerConcurrency, WaitsInPeaceWhileARetryIsDueAndAllHandlersAreBusy) {
  for (const std::uint64_t i : {1U, 2U, 3U}) {
    raw()("XADD", "s", StreamId{i, 0}, "key", std::to_string(i));
  }
  WorkerOptions options = four();
  options.concurrency = 2;
  options.block = 10min;
  options.key = [](const Entry& entry) { return std::string{entry.at("key")}; };
  Gate gate;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0} && delivery.attempt == 1) {
                            return Verdict::retry();
                          }
                          if (delivery.entry.id() != StreamId{1, 0}) gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(2));
  // The retry has been due for long; nobody is there to make it.
  const auto reads = calls_of("xreadgroup");
  const auto until = std::chrono::steady_clock::now() + 1s;
  ASSERT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() >= until; }));
  EXPECT_LT(calls_of("xreadgroup") - reads, 20U);
  gate.open();
  EXPECT_TRUE(journal.wait_for_calls(4));
  EXPECT_TRUE(nothing_is_pending());
}

class WorkerDefer : public WorkerConcurrency {};

TEST_F(WorkerDefer, FinishesOnAnotherThread) {
  append_ids(3);
  std::mutex mutex;
  std::map<StreamId, Completion> open;
  WorkerOptions options = four();
  options.concurrency = 1;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          std::lock_guard lock{mutex};
                          open[delivery.entry.id()] = delivery.defer();
                          return Verdict::dead_letter("not looked at");
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(3));
  EXPECT_EQ(pending(), 3);
  EXPECT_EQ(worker.stats().in_flight, 3U);
  {
    std::lock_guard lock{mutex};
    open.at({1, 0}).ack();
    open.at({2, 0}).dead_letter("no");
    open.erase({3, 0});  // means retry
  }
  EXPECT_TRUE(journal.wait_for_calls(4));
  EXPECT_EQ(journal.calls()[3].id, (StreamId{3, 0}));
  EXPECT_EQ(journal.calls()[3].attempt, 2U);
  EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  {
    std::lock_guard lock{mutex};
    open.at({3, 0}).ack();
  }
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDefer, HoldsNoMoreThanPrefetch) {
  append_ids(100);
  std::mutex mutex;
  std::vector<Completion> open;
  WorkerOptions options = four();
  options.concurrency = 1;
  options.prefetch = 8;
  ConsumerWorker worker{stream(), options, [&](const Delivery& delivery) {
                          std::lock_guard lock{mutex};
                          open.push_back(delivery.defer());
                        }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return pending() == 8; }));
  EXPECT_FALSE(wait_until([&] { return pending() > 8; }, 300ms));
  EXPECT_TRUE(wait_until([&] {
    std::lock_guard lock{mutex};
    for (Completion& completion : open) completion.ack();
    return worker.stats().succeeded == 100;
  }));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDefer, DoesNothingAfterTheWorkerIsGone) {
  append_ids(1);
  Completion left;
  std::promise<void> deferred;
  {
    WorkerOptions options = four();
    options.concurrency = 1;
    ConsumerWorker worker{stream(), options, [&](const Delivery& delivery) {
                            left = delivery.defer();
                            deferred.set_value();
                          }};
    worker.start();
    deferred.get_future().wait();
    EXPECT_EQ(worker.stop(10ms).abandoned, (Ids{{1, 0}}));
  }
  left.ack();
  EXPECT_EQ(pending(), 1);
}

TEST_F(WorkerDefer, IsWaitedForByAStopWithoutKeepingTheProcessorBusy) {
  append_ids(1);
  Completion left;
  std::promise<void> deferred;
  WorkerOptions options = four();
  options.concurrency = 1;
  ConsumerWorker worker{stream(), options, [&](const Delivery& delivery) {
                          left = delivery.defer();
                          deferred.set_value();
                        }};
  worker.start();
  deferred.get_future().wait();
  auto stop = std::async(std::launch::async, [&] { return worker.stop(kGenerous); });
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDraining; }));
  const std::clock_t before = std::clock();
  EXPECT_EQ(stop.wait_for(1s), std::future_status::timeout);
  const double busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(busy, 0.5) << "of one second";
  left.ack();
  const StopReport report = stop.get();
  EXPECT_EQ(report.finished, 1U);
  EXPECT_TRUE(report.abandoned.empty());
  EXPECT_EQ(pending(), 0);
}

TEST_F(WorkerDefer, MayFinishWhileTheWorkerGoes) {
  append_ids(200);
  for (int round = 0; round < 20; ++round) {
    std::mutex mutex;
    std::vector<Completion> open;
    WorkerOptions options = four();
    options.concurrency = 1;
    options.prefetch = 10;
    std::thread finisher;
    {
      ConsumerWorker worker{stream(), options, [&](const Delivery& delivery) {
                              const std::lock_guard lock{mutex};
                              open.push_back(delivery.defer());
                            }};
      worker.start();
      ASSERT_TRUE(wait_until([&] {
        const std::lock_guard lock{mutex};
        return open.size() == 10;
      }));
      finisher = std::thread{[&] {
        for (Completion& completion : open) completion.ack();
      }};
    }
    finisher.join();
    raw()("XGROUP", "DESTROY", "s", "g");
  }
}

class WorkerBatch : public WorkerConcurrency {};

TEST_F(WorkerBatch, HandlesWhatIsQueuedTogether) {
  append_ids(16);
  std::mutex mutex;
  std::vector<std::size_t> sizes;
  WorkerOptions options = four();
  options.concurrency = 1;
  ConsumerWorker worker{stream(), options, BatchHandler{[&](std::span<const Delivery> batch) {
                          std::lock_guard lock{mutex};
                          sizes.push_back(batch.size());
                          return Verdict::ack();
                        }}};
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.stats().succeeded == 16; }));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{16}));
}

TEST_F(WorkerBatch, TakesOneVerdictForEach) {
  append_ids(4);
  std::mutex mutex;
  std::map<StreamId, std::uint64_t> attempts;
  WorkerOptions options = four();
  options.concurrency = 1;
  ConsumerWorker worker{
      stream(), options, BatchHandler{[&](std::span<const Delivery> batch) {
        std::lock_guard lock{mutex};
        std::vector<Verdict> verdicts;
        for (const Delivery& delivery : batch) {
          attempts[delivery.entry.id()] = delivery.attempt;
          const bool even = delivery.entry.id().ms % 2 == 0;
          verdicts.push_back(even && delivery.attempt < 3 ? Verdict::retry() : Verdict::ack());
        }
        return verdicts;
      }}};
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.stats().succeeded == 4; }));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(attempts, (std::map<StreamId, std::uint64_t>{
                          {{1, 0}, 1}, {{2, 0}, 3}, {{3, 0}, 1}, {{4, 0}, 3}}));
}

TEST_F(WorkerBatch, TakesTooFewVerdictsForAFailureOfAll) {
  append_ids(4);
  std::mutex mutex;
  std::size_t calls = 0;
  WorkerOptions options = four();
  options.concurrency = 1;
  ConsumerWorker worker{stream(), options, BatchHandler{[&](std::span<const Delivery> batch) {
                          std::lock_guard lock{mutex};
                          ++calls;
                          return std::vector<Verdict>(calls == 1 ? 1 : batch.size(),
                                                      Verdict::ack());
                        }}};
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.stats().succeeded == 4; }));
  EXPECT_EQ(worker.stats().failed, 4U);
  EXPECT_THAT(heard().exceptions().at(0), ::testing::HasSubstr("1 verdicts for 4 entries"));
}

}  // namespace
}  // namespace millrace::test
