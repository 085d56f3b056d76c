#include "worker/liveness.hpp"

#include "unit/worker/ledger_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

class Liveness : public LedgerTest {
 protected:
  Work here(StreamId id, std::optional<std::size_t> lane = {}) {
    Work work = entry(id, lane);
    work.waits_since = clock_.now();
    return work;
  }
  Ticket queue(StreamId id, std::optional<std::size_t> lane = {}) {
    Work work = here(id, lane);
    EXPECT_TRUE(ledger_.hold(work));
    return work.ticket;
  }
  /// As a handler call does.
  Work start() {
    auto work = ledger_.next(clock_.now());
    EXPECT_TRUE(work.has_value());
    progress_ = clock_.now();
    return work.value_or(Work{});
  }
  void end() { progress_ = clock_.now(); }

  bool is_alive(Milliseconds within, WorkerState state = WorkerState::kRunning) {
    return detail::is_alive(state, ledger_.unfinished(), progress_, clock_.now(), within);
  }

  TimePoint progress_{};
};

TEST_F(Liveness, IsWithoutADoubtWhereNoWorkWaits) {
  end();
  clock_.advance(24h);
  EXPECT_TRUE(is_alive(0ms));
  done({1, 0});
  clock_.advance(24h);
  EXPECT_TRUE(is_alive(0ms)) << "an acknowledgement is not a handler's work";
}

TEST_F(Liveness, EndsWhereACallGoesOnForLongerThanThat) {
  queue({1, 0});
  start();
  clock_.advance(10s);
  EXPECT_TRUE(is_alive(10s));
  clock_.advance(1ms);
  EXPECT_FALSE(is_alive(10s));
}

TEST_F(Liveness, IsRenewedByEachCallThatEndsThoughAnotherHangs) {
  queue({1, 0});
  start();
  queue({2, 0});
  clock_.advance(9s);
  const Work second = start();
  clock_.advance(9s);
  ledger_.finish(second.ticket, clock_.now());
  end();
  clock_.advance(10s);
  EXPECT_TRUE(is_alive(10s));
  clock_.advance(1ms);
  EXPECT_FALSE(is_alive(10s)) << "the first still hangs";
}

TEST_F(Liveness, IsNotInDoubtWhenWorkComesAfterALongCalm) {
  end();
  clock_.advance(24h);
  queue({1, 0});
  clock_.advance(1s);
  EXPECT_TRUE(is_alive(10s));
  clock_.advance(10s);
  EXPECT_FALSE(is_alive(10s)) << "nobody starts it";
}

TEST_F(Liveness, IsNotRenewedByEntriesThatCome) {
  queue({1, 0});
  start();
  clock_.advance(11s);
  queue({2, 0});
  EXPECT_FALSE(is_alive(10s));
}

TEST_F(Liveness, IsNotInDoubtForARetryThatIsNotDueNorForItsLane) {
  queue({1, 0}, 7);
  const Work head = start();
  queue({2, 0}, 7);
  rest(head, 1h);
  end();
  clock_.advance(59min);
  EXPECT_TRUE(is_alive(10s));
  clock_.advance(2min);
  start();
  clock_.advance(10s);
  EXPECT_TRUE(is_alive(10s)) << "the retry is being handled, and the second waits behind it";
  clock_.advance(1ms);
  EXPECT_FALSE(is_alive(10s));
}

TEST_F(Liveness, CountsARetryFromTheTimeAtWhichItCouldStart) {
  queue({1, 0});
  rest(start(), 1h);
  end();
  clock_.advance(2h);
  EXPECT_FALSE(ledger_.unfinished().startable.has_value());
  ledger_.next_retry(clock_.now());
  EXPECT_EQ(ledger_.unfinished().startable, clock_.now());
  EXPECT_TRUE(is_alive(10s));
}

TEST_F(Liveness, AsksOnlyForCallsThatRunWhileTheServerIsAway) {
  queue({1, 0});
  clock_.advance(1h);
  EXPECT_FALSE(is_alive(10s));
  EXPECT_TRUE(is_alive(10s, WorkerState::kDegraded));
  start();
  clock_.advance(11s);
  EXPECT_FALSE(is_alive(10s, WorkerState::kDegraded));
}

TEST_F(Liveness, HasEndedInAWorkerThatFailedAndNotInOneThatStopped) {
  EXPECT_FALSE(is_alive(24h, WorkerState::kFailed));
  EXPECT_TRUE(is_alive(0ms, WorkerState::kStopped));
  EXPECT_TRUE(is_alive(0ms, WorkerState::kCreated));
}

TEST_F(Liveness, BearsAnyTime) {
  queue({1, 0});
  start();
  EXPECT_TRUE(is_alive(Milliseconds::max()));
  EXPECT_FALSE(is_alive(-1ms));
}

}  // namespace
}  // namespace millrace::detail
