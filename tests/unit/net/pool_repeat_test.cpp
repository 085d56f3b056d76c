#include "pool_test.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

TEST_F(PoolTest, SendsAgainWhatWasNotSent) {
  make();
  servers.next_calls({fail_unsent});
  EXPECT_EQ(call(), 2) << "on a new connection";
  EXPECT_EQ(pool->stats().open, 1U);
}

TEST_F(PoolTest, SendsAgainOnlyOnce) {
  make();
  servers.next_calls({fail_unsent, fail_unsent});
  EXPECT_THROW(call(), IoError);
  EXPECT_EQ(servers.made, 2U);
}

TEST_F(PoolTest, SendsAgainOnANewConnectionAlthoughOthersAreIdle) {
  make({.max_connections = 3});
  use_at_once(3);
  servers.next_calls({fail_unsent});
  EXPECT_EQ(call(), 4);
  EXPECT_EQ(servers.most_open, 3);
}

TEST_F(PoolTest, DoesNotSendAgainWhatMayHaveBeenApplied) {
  make();
  servers.next_calls({fail_unknown});
  EXPECT_THROW(call({.command = "XADD"}), IoError);
  EXPECT_EQ(servers.made, 1U);
}

TEST_F(PoolTest, SendsAReadAgain) {
  make();
  servers.next_calls({fail_unknown});
  EXPECT_EQ(call({.command = "XLEN", .repeat = Repeat::kSafe}), 2);
}

TEST_F(PoolTest, DoesNotSendAgainAfterATimeoutOrAServersError) {
  make();
  const CallSpec read{.command = "XLEN", .repeat = Repeat::kSafe};
  servers.next_calls({[](const CallSpec&) { throw TimeoutError{"late"}; }});
  EXPECT_THROW(call(read), TimeoutError);
  servers.next_calls({[](const CallSpec&) { throw ReadOnlyError{"replica"}; }});
  EXPECT_THROW(call(read), ReadOnlyError);
}

TEST_F(PoolTest, SendsAgainWithinTheDeadlineOfTheFirstTry) {
  make();
  const auto deadline = clock.now() + 1s + 2s;  // the command time-out, and the block time
  std::optional<TimePoint> second;
  servers.next_calls({[this](const CallSpec& spec) {
                        clock.advance(500ms);
                        fail_unsent(spec);
                      },
                      [&second](const CallSpec& spec) { second = spec.deadline; }});
  call({.command = "XREAD", .block = 2s});
  EXPECT_EQ(second, deadline);
  EXPECT_EQ(servers.connect_deadlines().back(), deadline);
}

TEST_F(PoolTest, RepeatsAPipelineOfWhichNothingWasSent) {
  make();
  const auto pipeline = [this](const CallSpec& spec) {
    std::int64_t connection = 0;
    const auto result = pool->pipeline(
        spec, write_ping, [&](std::size_t, Reply reply) { connection = reply.root().integer(); });
    return std::pair{result.error.has_value(), connection};
  };
  servers.next_calls({fail_unsent});
  EXPECT_EQ(pipeline({.command = "XADD"}), (std::pair{false, std::int64_t{2}}));
  servers.next_calls({fail_unknown});
  EXPECT_EQ(pipeline({.command = "XADD"}), (std::pair{true, std::int64_t{0}}));
  servers.next_calls({fail_unknown});
  EXPECT_EQ(pipeline({.command = "XLEN", .repeat = Repeat::kSafe}),
            (std::pair{false, std::int64_t{4}}));
}

}  // namespace
}  // namespace millrace::detail
