#include "support/monitor.hpp"
#include "worker_test.hpp"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class WorkerReaping : public WorkerTest {
 protected:
  /// Only what make_idle() has made so is idle for long enough.
  WorkerOptions reaper() {
    WorkerOptions reaper = options();
    reaper.min_idle = 1h;
    reaper.block = 50ms;
    return reaper;
  }
  WorkerOptions on_demand() {
    WorkerOptions on_demand = reaper();
    on_demand.reap_every = 0ms;
    return on_demand;
  }

  void make_idle(const Ids& ids, std::string_view owner = "bob") {
    for (const StreamId id : ids) {
      raw()("XCLAIM", "s", "g", owner, 0, id, "IDLE", 7'200'000, "JUSTID");
    }
  }
  /// Entries that bob was given long ago.
  Ids left_by_bob(std::size_t count) {
    const Ids ids = append_ids(count);
    orphan("bob", count);
    make_idle(ids);
    return ids;
  }

  /// Whether this line of a Monitor is a page from the lowest id on.
  static bool begins_a_sweep(const std::string& line) {
    return line.find("\"XPENDING\"") != std::string::npos &&
           line.find("\"0-0\"") != std::string::npos;
  }

  [[nodiscard]] bool some_sweeps_pass() {
    const auto pages = calls_of("xpending");
    return wait_until([&] { return calls_of("xpending") >= pages + 20; });
  }
};

TEST_F(WorkerReaping, TakesOverAndHandlesWhatAPeerLeftIdle) {
  const Ids ids = left_by_bob(50);
  Journal journal;
  ConsumerWorker worker{stream(), reaper(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(ids));
  for (const Journal::Call& call : journal.calls()) {
    EXPECT_TRUE(call.reclaimed);
    EXPECT_EQ(call.attempt, 2U) << "being taken over counts as a delivery once";
  }
  EXPECT_EQ(heard().reclaimed(), ids);
  EXPECT_EQ(worker.stats().reclaimed, 50U);
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerReaping, TakesOverWhatGetsIdleWhileItRuns) {
  Journal journal;
  ConsumerWorker worker{stream(), reaper(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  worker.pause();
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kPaused; }));
  const Ids ids = left_by_bob(3);
  worker.resume();
  EXPECT_TRUE(journal.wait_for(ids));
}

TEST_F(WorkerReaping, LeavesWhatHasNotBeenIdleForLongEnough) {
  append_ids(3);
  orphan("bob");
  make_idle({{3, 0}});
  Journal journal;
  ConsumerWorker worker{stream(), reaper(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{3, 0}}));
  ASSERT_TRUE(some_sweeps_pass());
  EXPECT_EQ(journal.ids(), (Ids{{3, 0}}));
  EXPECT_EQ(owner({1, 0}), "bob");
  EXPECT_EQ(deliveries({1, 0}), 1);
}

TEST_F(WorkerReaping, ComesToTheIdleTailBehindManyYoungEntries) {
  append_ids(150);
  orphan("bob", 150);
  Ids old;
  for (std::uint64_t i = 101; i <= 150; ++i) old.push_back({i, 0});
  make_idle(old);
  Monitor monitor{server()};
  Journal journal;
  WorkerOptions small_pages = reaper();
  small_pages.prefetch = 10;
  ConsumerWorker worker{stream(), small_pages, journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == old.back()) raw()("ECHO", Monitor::kMark);
                          return Verdict::ack();
                        })};
  worker.start();
  // A page looks at ten times as many entries as it takes: here, at young ones alone.
  ASSERT_TRUE(journal.wait_for(old));
  EXPECT_EQ(journal.ids(), old);
  EXPECT_EQ(owner({1, 0}), "bob");

  const auto lines = monitor.until_mark();
  const auto passes = std::ranges::count_if(lines, begins_a_sweep);
  EXPECT_GE(passes, 1);
  EXPECT_LE(passes, 2);
}

TEST_F(WorkerReaping, SweepsFromTheBeginningAgainAndAgainOnItsTimer) {
  append_ids(25);
  orphan("bob", 25);
  WorkerOptions timed = reaper();
  timed.reap_every = 50ms;
  timed.block = 10min;  // the small page that each block brings is far away
  timed.prefetch = 1;   // a page looks at ten entries: three pages to a sweep
  Journal journal;
  ConsumerWorker worker{stream(), timed, journal.handler()};
  Monitor monitor{server()};
  worker.start();
  ASSERT_TRUE(blocked());
  ASSERT_EQ(journal.size(), 0U);

  std::uint64_t last = 25;
  for (const StreamId id : Ids{{25, 0}, {13, 0}, {1, 0}}) {
    make_idle({id});
    // Whether a sweep is due it sees when an entry has ended its read.
    EXPECT_TRUE(wait_until([&] {
      append_ids(1, last++);
      return journal.missing(Ids{id}).empty();
    }));
  }
  raw()("ECHO", Monitor::kMark);
  const auto lines = monitor.until_mark();
  const auto sweeps = std::ranges::count_if(lines, begins_a_sweep);
  EXPECT_GE(sweeps, 4) << "one at the start, and one for each that became idle";
}

TEST_F(WorkerReaping, DoesNotCallTheHandlerForEntriesThatAreGone) {
  left_by_bob(3);
  raw()("XDEL", "s", "2-0");
  Journal journal;
  ConsumerWorker worker{stream(), reaper(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(heard().deleted(), (Ids{{2, 0}}));
  EXPECT_EQ(worker.stats().trimmed, 1U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerReaping, BringsBackWhatAHandlerThrewAtAfterItsPause) {
  constexpr auto kMinIdle = 400ms;
  Journal journal;
  WorkerOptions options = this->options();
  options.min_idle = kMinIdle;
  options.block = 20ms;
  std::vector<Clock::time_point> starts(4);
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery& delivery) {
                          starts.at(delivery.entry.id().ms) = Clock::now();
                          if (delivery.attempt > 1) return Verdict::ack();
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            throw std::runtime_error{"the card is refused"};
                          }
                          if (delivery.entry.id() == StreamId{2, 0}) throw 42;
                          return Verdict::retry();
                        })};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  const auto appended = Clock::now();
  append_ids(3);

  ASSERT_TRUE(wait_until([&] { return heard().acknowledged().size() == 3; }));
  for (const StreamId id : Ids{{1, 0}, {2, 0}, {3, 0}}) {
    const auto calls = journal.calls_for(id);
    ASSERT_EQ(calls.size(), 2U) << id;
    EXPECT_EQ(calls[1].attempt, 2U) << id;
    EXPECT_TRUE(calls[1].reclaimed) << id;
    EXPECT_GE(starts.at(id.ms) - appended, kMinIdle / 2)
        << id << ": the longest pause, with jitter";
  }
  EXPECT_EQ(worker.stats().failed, 3U);
  EXPECT_THAT(heard().exceptions(),
              ::testing::ElementsAre("the card is refused", ::testing::HasSubstr("exception")));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
}

TEST_F(WorkerReaping, CountsEachStartOfTheHandler) {
  const Ids ids = left_by_bob(1);
  Journal journal;
  ConsumerWorker worker{stream(), reaper(), journal.handler([](const Delivery& delivery) {
                          return delivery.attempt < 5 ? Verdict::retry() : Verdict::ack();
                        })};
  worker.start();
  for (std::size_t calls = 1; calls < 4; ++calls) {
    ASSERT_TRUE(journal.wait_for_calls(calls));
    ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
    EXPECT_EQ(deliveries({1, 0}), static_cast<std::int64_t>(calls) + 1);
    make_idle(ids, "alice");
  }
  EXPECT_TRUE(nothing_is_pending());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(journal.calls().at(i).attempt, i + 2);
}

TEST_F(WorkerReaping, ReapsNothingByItselfWhereItIsToldSo) {
  const Ids ids = left_by_bob(3);
  Journal journal;
  ConsumerWorker worker{stream(), on_demand(), journal.handler()};
  worker.start();
  const auto reads = calls_of("xreadgroup");
  ASSERT_TRUE(wait_until([&] { return calls_of("xreadgroup") >= reads + 5; }));
  EXPECT_EQ(owner({1, 0}), "bob");
  EXPECT_EQ(journal.size(), 0U);

  const ReapReport report = worker.reap_idle_pending();
  EXPECT_EQ(report.processed, 3U);
  EXPECT_EQ(journal.ids(), ids);
}

}  // namespace
}  // namespace millrace::test
