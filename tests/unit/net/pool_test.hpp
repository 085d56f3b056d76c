#pragma once

#include <millrace/error.hpp>

#include "fake_topology.hpp"
#include "net/pool.hpp"
#include "support/gate.hpp"
#include "support/manual_clock.hpp"
#include "unit/net/write_ping.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

namespace millrace::detail {

inline void fail_unsent(const CallSpec&) { throw IoError{"not sent", Outcome::kNotApplied}; }
inline void fail_unknown(const CallSpec&) { throw IoError{"sent", Outcome::kUnknown}; }

/// A pool over servers and a clock that the test plays.
class PoolTest : public ::testing::Test {
 protected:
  void make(PoolOptions options = {}) {
    pool.emplace(std::make_unique<FakeTopology>(servers), ConnectionOptions{}, options, clock);
  }

  /// One call; the number of the connection that it ran on.
  std::int64_t call(const CallSpec& spec = {.command = "PING", .key = "k"}) {
    return pool->call(spec, write_ping).root().integer();
  }

  /// So many calls at once, each on a connection of its own, in the order of its number.
  void use_at_once(
      std::size_t count, const std::function<void()>& meanwhile = [] {}) {
    test::Gate gate;
    servers.next_calls({count, [&gate](const CallSpec&) { gate.pass(); }});
    std::vector<std::future<std::int64_t>> calls;
    for (std::size_t i = 0; i < count; ++i) {
      calls.push_back(std::async(std::launch::async, [this] { return call(); }));
      ASSERT_TRUE(gate.wait_for_arrivals(i + 1));
    }
    meanwhile();
    gate.open();
    for (auto& each : calls) each.get();
  }

  test::ManualClock clock;
  FakeServers servers;
  std::optional<Pool> pool;
};

}  // namespace millrace::detail
