#include "worker/config.hpp"

#include "support/entries.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>
#include <functional>
#include <regex>
#include <set>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

EventStream stream(Milliseconds claim_min_idle = 30s) {
  return EventStream{ConnectionPool{}, "orders", {.claim_min_idle = claim_min_idle}};
}

WorkerOptions good() { return {.group = "g", .group_start = GroupStart::beginning()}; }

TEST(WorkerConfig, HasTheDefaultsThatAreDocumented) {
  const WorkerConfig config = resolve(good(), stream());
  EXPECT_EQ(config.key, "orders");
  EXPECT_EQ(config.group, "g");
  EXPECT_EQ(config.group_start, GroupStart::beginning());
  EXPECT_EQ(config.prefetch, 16U);
  EXPECT_EQ(config.block, 2s);
  EXPECT_EQ(config.min_idle, 30s);
  EXPECT_EQ(config.reap_every, 15s);
  EXPECT_EQ(config.on_missing_group, OnMissingGroup::kRecreate);
  EXPECT_EQ(config.reconnect_min, 100ms);
  EXPECT_EQ(config.reconnect_max, 5s);
}

TEST(WorkerConfig, TakesMinIdleFromTheStreamUnlessItIsGiven) {
  EXPECT_EQ(resolve(good(), stream(7s)).min_idle, 7s);
  WorkerOptions options = good();
  options.min_idle = 9s;
  EXPECT_EQ(resolve(options, stream(7s)).min_idle, 9s);
}

TEST(WorkerConfig, BlocksForAQuarterOfMinIdleWhereThatIsLess) {
  EXPECT_EQ(resolve(good(), stream(8s)).block, 2s);
  EXPECT_EQ(resolve(good(), stream(4s)).block, 1s);
  EXPECT_EQ(resolve(good(), stream(1ms)).block, 1ms) << "never not at all";
}

TEST(WorkerConfig, UsesAGivenConsumerNameAsItIs) {
  WorkerOptions options = good();
  options.consumer = "host 7";
  EXPECT_EQ(resolve(options, stream()).consumer, "host 7");
}

TEST(WorkerConfig, NamesAConsumerByHostProcessAndEightRandomDigits) {
  std::set<std::string> names;
  for (int i = 0; i < 50; ++i) names.insert(resolve(good(), stream()).consumer);
  EXPECT_EQ(names.size(), 50U);
  std::string host(256, '\0');
  ASSERT_EQ(gethostname(host.data(), host.size() - 1), 0);
  const std::string start = std::string{host.c_str()} + "-" + std::to_string(getpid()) + "-";
  for (const std::string& name : names) {
    ASSERT_EQ(name.substr(0, start.size()), start);
    EXPECT_TRUE(std::regex_match(name.substr(start.size()), std::regex{"[0-9a-f]{8}"})) << name;
  }
}

/// Options of which one is bad, and what a message must say of it: the option, its value, the rule.
struct BadOption {
  std::string name;
  std::function<void(WorkerOptions&)> spoil;
  std::string option, value, rule;
};

class BadOptionTest : public ::testing::TestWithParam<BadOption> {};

TEST_P(BadOptionTest, IsRefusedWithItsNameItsValueAndTheRule) {
  WorkerOptions options = good();
  GetParam().spoil(options);
  const std::string message =
      test::thrown<InvalidArgument>([&] { resolve(options, stream()); }).what();
  EXPECT_THAT(message, HasSubstr("WorkerOptions::" + GetParam().option));
  EXPECT_THAT(message, HasSubstr(GetParam().value));
  EXPECT_THAT(message, HasSubstr(GetParam().rule));
}

INSTANTIATE_TEST_SUITE_P(
    , BadOptionTest,
    ::testing::Values(
        BadOption{"NoGroup", [](auto& o) { o.group.clear(); }, "group", "empty", "must be given"},
        BadOption{"NoGroupStart", [](auto& o) { o.group_start.reset(); }, "group_start",
                  "not given", "where the group starts"},
        BadOption{"NoPrefetch", [](auto& o) { o.prefetch = 0; }, "prefetch", "0",
                  "from 1 to 10000"},
        BadOption{"TooMuchPrefetch", [](auto& o) { o.prefetch = 10'001; }, "prefetch", "10001",
                  "from 1 to 10000"},
        BadOption{"NoBlock", [](auto& o) { o.block = 0ms; }, "block", "0 ms", "more than 0"},
        BadOption{"NegativeBlock", [](auto& o) { o.block = -1ms; }, "block", "-1 ms",
                  "more than 0"},
        BadOption{"LongBlock", [](auto& o) { o.block = 7'501ms; }, "block", "7501 ms",
                  "at most a quarter of min_idle, 7500 ms"},
        BadOption{"EndlessBlock", [](auto& o) { o.block = Milliseconds::max(); }, "block",
                  "9223372036854775807 ms", "at most a quarter"},
        BadOption{"NoMinIdle", [](auto& o) { o.min_idle = 0ms; }, "min_idle", "0 ms",
                  "more than 0"},
        BadOption{"NegativeMinIdle", [](auto& o) { o.min_idle = -5ms; }, "min_idle", "-5 ms",
                  "more than 0"},
        BadOption{"NegativeReapEvery", [](auto& o) { o.reap_every = -1ms; }, "reap_every", "-1 ms",
                  "not be negative"},
        BadOption{"EndlessMinIdle", [](auto& o) { o.min_idle = Milliseconds::max(); }, "min_idle",
                  "9223372036854775807 ms", "at most ten years"},
        BadOption{"EndlessReapEvery", [](auto& o) { o.reap_every = Milliseconds::max(); },
                  "reap_every", "9223372036854775807 ms", "at most ten years"},
        BadOption{"EndlessReconnect", [](auto& o) { o.reconnect_max = Milliseconds::max(); },
                  "reconnect_max", "9223372036854775807 ms", "at most ten years"},
        BadOption{"NoReconnectMin", [](auto& o) { o.reconnect_min = 0ms; }, "reconnect_min", "0 ms",
                  "more than 0"},
        BadOption{"ReconnectMaxBelowMin", [](auto& o) { o.reconnect_max = 99ms; }, "reconnect_max",
                  "99 ms", "less than reconnect_min"}),
    [](const auto& bad) { return bad.param.name; });

TEST(WorkerConfig, TakesEachBoundItself) {
  WorkerOptions options = good();
  options.prefetch = 10'000;
  options.block = 7'500ms;
  options.reap_every = 0ms;
  options.reconnect_max = options.reconnect_min = 1ms;
  EXPECT_NO_THROW(resolve(options, stream()));
  options.prefetch = 1;
  options.block = 1ms;
  EXPECT_NO_THROW(resolve(options, stream()));
}

TEST(WorkerConfig, IsCheckedWhenAWorkerIsMade) {
  EXPECT_THROW(ConsumerWorker(stream(), {.group_start = GroupStart::now()}, [](const Delivery&) {}),
               InvalidArgument);
}

}  // namespace
}  // namespace millrace::detail
