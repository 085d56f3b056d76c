/// Options, written as call sites write them: designated, some members only, never with a warning.

#include <millrace/connection.hpp>
#include <millrace/error.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/stream_options.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {
namespace {

using namespace std::chrono_literals;

const ConnectionPool pool{};  // connects when it is asked for a connection: never, here

TEST(OptionCalls, AStreamWithoutOptions) {
  const EventStream a{pool, "k"};
  EXPECT_EQ(a.key(), "k");
  EXPECT_EQ(a.options().retention, std::nullopt);
}

TEST(OptionCalls, AStreamWithRetention) {
  const EventStream by_length{pool, "k", {.retention = Trim::max_len(1000)}};
  EXPECT_EQ(by_length.options().retention, Trim::max_len(1000));

  const EventStream by_age{pool, "k", {.retention = Trim::max_age(24h).exactly()}};
  EXPECT_EQ(by_age.options().retention, Trim::max_age(24h).exactly());

  const EventStream none{pool, "k", {.retention = std::nullopt}};
  EXPECT_EQ(none.options().retention, std::nullopt);
}

TEST(OptionCalls, CountsThatCannotBeNegative) {
  const std::size_t size = 5;
  const std::uint32_t narrow = 5;
  EXPECT_EQ(Trim::max_len(5), Trim::max_len(size));
  EXPECT_EQ(Trim::max_len(5), Trim::max_len(narrow));
  EXPECT_EQ(Trim::max_len(5), Trim::max_len(5U));
  EXPECT_EQ(Trim::max_len(0), Trim::max_len(std::uint64_t{0}));
  EXPECT_EQ(Trim::max_len(5).limit(1000).limit(), 1000U);
}

TEST(OptionCalls, AReadWithSomeOptions) {
  const ReadOptions options{.count = 1, .block = 10ms};
  EXPECT_EQ(options.count, 1U);
  EXPECT_EQ(options.block, 10ms);
  EXPECT_FALSE(options.no_ack);
}

TEST(OptionCalls, AnAutoclaimWithSomeOptions) {
  const AutoclaimOptions options{.min_idle = 1s, .count = 10};
  EXPECT_EQ(options.min_idle, 1s);
  EXPECT_EQ(options.start, StreamId{});
  EXPECT_EQ(options.count, 10U);
}

TEST(OptionCalls, EveryOtherOptionWithItsFirstAndItsLastMember) {
  const ConnectionOptions connection{.host = "redis.example", .resp_version = 2};
  const PoolOptions bounds{.max_connections = 4, .max_lifetime = 1h};
  const AddOptions add{.id = AddId::exactly({1, 0}), .create_stream = false};
  const ClaimOptions claim{.idle = 0ms, .last_id = StreamId{1, 0}};
  const PendingQuery query{.start = StreamId{1, 0}, .min_idle = 1s};
  EXPECT_EQ(connection.port, 6379);
  EXPECT_EQ(bounds.wait_timeout, 1s);
  EXPECT_EQ(add.trim, std::nullopt);
  EXPECT_FALSE(claim.force);
  EXPECT_EQ(query.count, 100U);
}

TEST(OptionCalls, RangesOfIdsAreInclusiveUnlessTheySayOtherwise) {
  const StreamId a{1, 0}, b{2, 0};
  EXPECT_FALSE(RangeStart{a}.exclusive());
  EXPECT_TRUE(RangeStart::after(a).exclusive());
  EXPECT_FALSE(RangeEnd{b}.exclusive());
  EXPECT_TRUE(RangeEnd::before(b).exclusive());
  EXPECT_EQ(RangeStart{}.id(), StreamId::min());
  EXPECT_EQ(RangeEnd{}.id(), StreamId::max());
}

}  // namespace
}  // namespace millrace
