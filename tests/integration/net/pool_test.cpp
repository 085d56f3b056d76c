#include "support/stream_test.hpp"

#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

/// The pool does not care for the protocol, so these run on the usual one.
class PoolTest : public ServerTest {
 protected:
  static ConnectionPool pool(PoolOptions pool_options) {
    return ConnectionPool{server().options(), pool_options};
  }

  std::string clients() { return info_field(raw(), "clients", "connected_clients"); }
  std::string connections_received() {
    return info_field(raw(), "stats", "total_connections_received");
  }
  [[nodiscard]] bool blocked(std::size_t count) {
    return wait_until(
        [&] { return info_field(raw(), "clients", "blocked_clients") == std::to_string(count); });
  }

  /// Holds one connection until the stream `hold` gets an entry.
  std::future<EntryBatch> hold(const ConnectionPool& from) {
    auto held = std::async(std::launch::async, [from] {
      return EventStream{from, "hold"}.read(StreamId::min(), kLong);
    });
    EXPECT_TRUE(blocked(1));
    return held;
  }
  void let_go() { raw()("XADD", "hold", "*", "f", "v"); }
};

TEST_F(PoolTest, UsesOneConnectionForCallsOneAfterAnother) {
  const EventStream stream{pool({}), "s"};
  for (int i = 0; i < 100; ++i) stream.add({{"f", "v"}});
  const PoolStats stats = stream.pool().stats();
  EXPECT_EQ(stats.created, 1U);
  EXPECT_EQ(stats.open, 1U);
  EXPECT_EQ(stats.idle, 1U);
  EXPECT_EQ(stats.in_use, 0U);
}

TEST_F(PoolTest, MakesABorrowerWaitAtItsBound) {
  const ConnectionPool one = pool({.max_connections = 1, .wait_timeout = kGenerous});
  auto held = hold(one);
  auto ping = std::async(std::launch::async, [one] { one.ping(); });
  ASSERT_TRUE(wait_until([&] { return one.stats().waiting == 1; }));
  EXPECT_EQ(one.stats().in_use, 1U);
  let_go();
  ping.get();
  EXPECT_EQ(held.get().size(), 1U);
  EXPECT_EQ(one.stats().created, 1U);
  EXPECT_EQ(one.stats().waiting, 0U);
  EXPECT_EQ(one.stats().timeouts, 0U);
}

TEST_F(PoolTest, TurnsABorrowerAwayWhoWaitedForTooLong) {
  const ConnectionPool one = pool({.max_connections = 1, .wait_timeout = 50ms});
  auto held = hold(one);
  const auto start = Clock::now();
  const auto error = thrown<PoolTimeout>([&] { one.ping(); });
  EXPECT_GE(Clock::now() - start, 50ms);
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(error.retryable());
  EXPECT_EQ(one.stats().timeouts, 1U);
  let_go();
  held.get();
  one.ping();
}

TEST_F(PoolTest, TurnsABorrowerAwayAtOnceWhereNobodyMayWait) {
  const ConnectionPool one = pool({.max_connections = 1, .wait_timeout = 0ms});
  auto held = hold(one);
  EXPECT_THROW(one.ping(), PoolTimeout);
  EXPECT_EQ(one.stats().timeouts, 1U);
  let_go();
  held.get();
}

TEST_F(PoolTest, DoesNotWaitForEverByDefault) {
  const ConnectionPool one = pool({.max_connections = 1});
  auto held = hold(one);
  EXPECT_THROW(one.ping(), PoolTimeout);  // such as a call from within another one's callback
  let_go();
  held.get();
}

TEST_F(PoolTest, ClosesIdleConnectionsInTime) {
  const ConnectionPool some = pool({.max_idle_time = 20ms});
  auto held = hold(some);
  some.ping();
  let_go();
  held.get();
  ASSERT_EQ(some.stats().created, 2U);
  EXPECT_TRUE(wait_until([&] {
    some.ping();  // the one that is in use stays
    return clients() == "2";
  }));
  EXPECT_LE(some.stats().open, 1U);
  EXPECT_GE(some.stats().closed, 1U);
}

TEST_F(PoolTest, ReplacesConnectionsThatAreTooOld) {
  const ConnectionPool brief = pool({.max_lifetime = 20ms});
  EXPECT_TRUE(wait_until([&] {
    brief.ping();
    return brief.stats().created >= 3;
  }));
  EXPECT_LE(brief.stats().open, 1U);  // the last one may be too old by now as well
  EXPECT_TRUE(wait_until([&] { return std::stoul(clients()) <= 2; }));
}

TEST_F(PoolTest, ClosesItsConnectionsWithItself) {
  {
    const EventStream stream{pool({}), "s"};
    stream.add({{"f", "v"}});
    EXPECT_EQ(clients(), "2");
  }
  EXPECT_TRUE(wait_until([&] { return clients() == "1"; }));
}

TEST_F(PoolTest, MakesNoNewConnectionForABatch) {
  const ConnectionPool four = pool({.max_connections = 4, .wait_timeout = kGenerous});
  const auto before = std::stoul(connections_received());
  std::vector<std::future<void>> threads;
  for (int i = 0; i < 4; ++i) {
    threads.push_back(std::async(std::launch::async, [stream = EventStream{four, "s"}] {
      const std::vector<OwnedFields> batch(2, OwnedFields{{"f", "v"}});
      for (int n = 0; n < 2500; ++n) {
        for (const AddResult& result : stream.add_batch(batch)) EXPECT_TRUE(result.id.has_value());
      }
    }));
  }
  for (auto& thread : threads) thread.get();
  EXPECT_LE(std::stoul(connections_received()) - before, 4U);
  EXPECT_EQ(EventStream(four, "s").length(), 20'000U);
}

}  // namespace
}  // namespace millrace::test
