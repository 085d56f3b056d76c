#include "worker/config.hpp"

#include "support/entries.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <functional>
#include <optional>
#include <regex>
#include <set>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

EventStream stream(Milliseconds claim_min_idle = 30s) {
  return EventStream{ConnectionPool{}, "orders", {.claim_min_idle = claim_min_idle}};
}

WorkerOptions good() { return {.group = "g", .group_start = GroupStart::beginning()}; }

TEST(WorkerConfig, HasTheDefaultsThatAreDocumented) {
  const WorkerConfig config = resolve(good(), stream());
  EXPECT_EQ(config.key, "orders");
  EXPECT_EQ(config.group, "g");
  EXPECT_EQ(config.group_start, GroupStart::beginning());
  EXPECT_EQ(config.concurrency, 1U);
  EXPECT_EQ(config.prefetch, 16U);
  EXPECT_EQ(config.prefetch_bytes, 64U << 20);
  EXPECT_EQ(config.block, 2s);
  EXPECT_EQ(config.min_idle, 30s);
  EXPECT_EQ(config.reap_every, 15s);
  EXPECT_EQ(config.lease_renew_every, 10s);
  EXPECT_EQ(config.max_deliveries, 5U);
  EXPECT_EQ(config.retry_backoff, 1s);
  EXPECT_TRUE(config.letters.enabled);
  EXPECT_TRUE(config.letters.to_stream());
  EXPECT_EQ(config.letters.stream, "{orders}:dlq");
  EXPECT_EQ(config.letters.max_length, std::nullopt);
  EXPECT_EQ(config.record, "{orders}:millrace:g");
  EXPECT_EQ(config.max_handler_time, std::nullopt);
  EXPECT_FALSE(config.lane);
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

/// Options of which one is bad, and what is said of it: the option, its value, the rule.
struct BadOption {
  std::string name;
  std::function<void(WorkerOptions&)> spoil;
  std::string message;
};

class BadOptionTest : public ::testing::TestWithParam<BadOption> {};

TEST_P(BadOptionTest, IsRefusedWithItsNameItsValueAndTheRule) {
  WorkerOptions options = good();
  GetParam().spoil(options);
  EXPECT_EQ(test::thrown<InvalidArgument>([&] { resolve(options, stream()); }).what(),
            GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    , BadOptionTest,
    ::testing::Values(
        BadOption{"NoGroup", [](auto& o) { o.group.clear(); },
                  "WorkerOptions::group is empty: it must be given"},
        BadOption{"NoGroupStart", [](auto& o) { o.group_start.reset(); },
                  "WorkerOptions::group_start is not given: it must say where the group starts if "
                  "it has to be made"},
        BadOption{"NoConcurrency", [](auto& o) { o.concurrency = 0; },
                  "WorkerOptions::concurrency is 0: it must be from 1 to 1000"},
        BadOption{"TooMuchConcurrency", [](auto& o) { o.concurrency = 1'001; },
                  "WorkerOptions::concurrency is 1001: it must be from 1 to 1000"},
        BadOption{"NoPrefetch", [](auto& o) { o.prefetch = 0; },
                  "WorkerOptions::prefetch is 0: it must be from 1 to 10000"},
        BadOption{"TooMuchPrefetch", [](auto& o) { o.prefetch = 10'001; },
                  "WorkerOptions::prefetch is 10001: it must be from 1 to 10000"},
        BadOption{"NoPrefetchBytes", [](auto& o) { o.prefetch_bytes = 0; },
                  "WorkerOptions::prefetch_bytes is 0: it must be more than 0"},
        BadOption{"NoBlock", [](auto& o) { o.block = 0ms; },
                  "WorkerOptions::block is 0 ms: it must be more than 0 and at most a quarter of "
                  "min_idle, 7500 ms"},
        BadOption{"NegativeBlock", [](auto& o) { o.block = -1ms; },
                  "WorkerOptions::block is -1 ms: it must be more than 0 and at most a quarter of "
                  "min_idle, 7500 ms"},
        BadOption{"LongBlock", [](auto& o) { o.block = 7'501ms; },
                  "WorkerOptions::block is 7501 ms: it must be more than 0 and at most a quarter "
                  "of min_idle, 7500 ms"},
        BadOption{"EndlessBlock", [](auto& o) { o.block = Milliseconds::max(); },
                  "WorkerOptions::block is 9223372036854775807 ms: it must be more than 0 and at "
                  "most a quarter of min_idle, 7500 ms"},
        BadOption{"NoMinIdle", [](auto& o) { o.min_idle = 0ms; },
                  "WorkerOptions::min_idle is 0 ms: it must be more than 0"},
        BadOption{"NegativeMinIdle", [](auto& o) { o.min_idle = -5ms; },
                  "WorkerOptions::min_idle is -5 ms: it must be more than 0"},
        BadOption{
            "EndlessMinIdle", [](auto& o) { o.min_idle = Milliseconds::max(); },
            "WorkerOptions::min_idle is 9223372036854775807 ms: it must be at most ten years"},
        BadOption{"NoRenewal", [](auto& o) { o.lease_renew_every = 0ms; },
                  "WorkerOptions::lease_renew_every is 0 ms: it must be more than 0 and at most "
                  "half of min_idle, 15000 ms"},
        BadOption{"RareRenewal", [](auto& o) { o.lease_renew_every = 15'001ms; },
                  "WorkerOptions::lease_renew_every is 15001 ms: it must be more than 0 and at "
                  "most half of min_idle, 15000 ms"},
        BadOption{"NegativeReapEvery", [](auto& o) { o.reap_every = -1ms; },
                  "WorkerOptions::reap_every is -1 ms: it must not be negative"},
        BadOption{
            "EndlessReapEvery", [](auto& o) { o.reap_every = Milliseconds::max(); },
            "WorkerOptions::reap_every is 9223372036854775807 ms: it must be at most ten years"},
        BadOption{"OneDelivery", [](auto& o) { o.max_deliveries = 1; },
                  "WorkerOptions::max_deliveries is 1: it must be at least 2"},
        BadOption{"NoDelivery", [](auto& o) { o.max_deliveries = 0; },
                  "WorkerOptions::max_deliveries is 0: it must be at least 2"},
        BadOption{"NoRetryBackoff", [](auto& o) { o.retry_backoff = 0ms; },
                  "WorkerOptions::retry_backoff is 0 ms: it must be more than 0"},
        BadOption{
            "EndlessRetryBackoff", [](auto& o) { o.retry_backoff = Milliseconds::max(); },
            "WorkerOptions::retry_backoff is 9223372036854775807 ms: it must be at most ten years"},
        BadOption{"NoHandlerTime", [](auto& o) { o.max_handler_time = 0ms; },
                  "WorkerOptions::max_handler_time is 0 ms: it must be more than 0"},
        BadOption{"EndlessHandlerTime", [](auto& o) { o.max_handler_time = Milliseconds::max(); },
                  "WorkerOptions::max_handler_time is 9223372036854775807 ms: it must be at most "
                  "ten years"},
        BadOption{"NoDeadLetters", [](auto& o) { o.dead_letter.max_length = 0; },
                  "WorkerOptions::dead_letter.max_length is 0: it must be more than 0"},
        BadOption{"DeadLettersInTheStreamItself", [](auto& o) { o.dead_letter.stream = "orders"; },
                  "WorkerOptions::dead_letter.stream is orders: it must not be the stream itself"},
        BadOption{
            "DeadLettersInAStreamAndASink",
            [](auto& o) { o.dead_letter = {.stream = "x", .sink = [](const DeadLetter&) {}}; },
            "WorkerOptions::dead_letter.stream is x: it must not be given beside a sink"},
        BadOption{"NoReconnectMin", [](auto& o) { o.reconnect_min = 0ms; },
                  "WorkerOptions::reconnect_min is 0 ms: it must be more than 0"},
        BadOption{"ReconnectMaxBelowMin", [](auto& o) { o.reconnect_max = 99ms; },
                  "WorkerOptions::reconnect_max is 99 ms: it must not be less than reconnect_min"},
        BadOption{"EndlessReconnect", [](auto& o) { o.reconnect_max = Milliseconds::max(); },
                  "WorkerOptions::reconnect_max is 9223372036854775807 ms: it must be at most ten "
                  "years"}),
    [](const auto& bad) { return bad.param.name; });

TEST(WorkerConfig, TakesEachBoundItself) {
  WorkerOptions options = good();
  options.prefetch = 10'000;
  options.block = 7'500ms;
  options.concurrency = 1'000;
  options.prefetch_bytes = 1;
  options.lease_renew_every = 15s;
  options.max_deliveries = 2;
  options.retry_backoff = 1ms;
  options.max_handler_time = 1ms;
  options.dead_letter.max_length = 1;
  options.reap_every = 0ms;
  options.reconnect_max = options.reconnect_min = 1ms;
  EXPECT_NO_THROW(resolve(options, stream()));
  options.prefetch = 1;
  options.block = 1ms;
  options.lease_renew_every = 1ms;
  EXPECT_NO_THROW(resolve(options, stream()));
}

TEST(WorkerConfig, RenewsAThirdOfMinIdleButNotAllTheTime) {
  EXPECT_EQ(resolve(good(), stream(9s)).lease_renew_every, 3s);
  EXPECT_EQ(resolve(good(), stream(1ms)).lease_renew_every, 1ms);
}

TEST(WorkerConfig, TellsWorkersOfAGivenNameApartByATokenAndOthersByTheirNames) {
  WorkerOptions options = good();
  EXPECT_EQ(resolve(options, stream()).token, "") << "nobody else can have the name";
  options.consumer = "alice";
  const std::string first = resolve(options, stream()).token;
  EXPECT_TRUE(std::regex_match(first, std::regex{"[0-9a-f]{16}"})) << first;
  EXPECT_NE(resolve(options, stream()).token, first);
}

TEST(WorkerConfig, WritesDeadLettersWhereItIsTold) {
  WorkerOptions options = good();
  options.dead_letter = {.stream = "graveyard", .max_length = 7};
  const auto letters = resolve(options, stream()).letters;
  EXPECT_EQ(letters.stream, "graveyard");
  EXPECT_EQ(letters.max_length, 7U);
  EXPECT_TRUE(letters.to_stream());
  options.dead_letter = {.sink = [](const DeadLetter&) {}};
  EXPECT_FALSE(resolve(options, stream()).letters.to_stream());
  options.dead_letter = {.enabled = false};
  EXPECT_FALSE(resolve(options, stream()).letters.to_stream());
}

TEST(WorkerConfig, NeedsANameForDeadLettersWhereTheKeyHasABraceButNoHashTag) {
  const EventStream odd{ConnectionPool{}, "a}b"};
  WorkerOptions options = good();
  EXPECT_EQ(test::thrown<InvalidArgument>([&] { resolve(options, odd); }).what(),
            std::string{"WorkerOptions::dead_letter.stream is empty: it must be given for a key "
                        "with a '}' but no hash tag"});
  EXPECT_THROW(resolve(options, EventStream(ConnectionPool{}, "{}a")), InvalidArgument);
  options.dead_letter.stream = "graveyard";
  EXPECT_NO_THROW(resolve(options, odd));
  options.dead_letter = {.enabled = false};
  EXPECT_NO_THROW(resolve(options, odd));
  EXPECT_NO_THROW(resolve(good(), EventStream(ConnectionPool{}, "{a}b}")));
}

TEST(SiblingKey, IsInTheSameSlotOfACluster) {
  EXPECT_EQ(sibling_key("orders", "dlq"), "{orders}:dlq");
  EXPECT_EQ(sibling_key("{user}:orders", "dlq"), "{user}:orders:dlq");
  EXPECT_EQ(sibling_key("orders:{user}", "dlq"), "orders:{user}:dlq");
  EXPECT_EQ(sibling_key("a{b", "dlq"), "{a{b}:dlq") << "an open brace is no hash tag";
  EXPECT_EQ(sibling_key("{a}{b}", "dlq"), "{a}{b}:dlq") << "the first one counts";
  EXPECT_EQ(sibling_key("{{a}}", "dlq"), "{{a}}:dlq");
  EXPECT_EQ(sibling_key("", "dlq"), "{}:dlq");
}

TEST(WorkerConfig, IsCheckedWhenAWorkerIsMade) {
  EXPECT_THROW(ConsumerWorker(stream(), {.group_start = GroupStart::now()}, [](const Delivery&) {}),
               InvalidArgument);
}

}  // namespace
}  // namespace millrace::detail
