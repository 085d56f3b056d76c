#include "protocol/checks.hpp"

#include <millrace/error.hpp>

#include "protocol/request.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kTooLarge = std::uint64_t{1} << 63;
const std::chrono::system_clock::time_point kNow{1'000'000ms};

/// What the refusal says; empty if nothing is refused.
template <typename Check>
std::string refusal_of(Check check) {
  try {
    check();
    return {};
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

TEST(Checks, RefuseEmptyNames) {
  EXPECT_EQ(refusal_of([] { checks::name("group", ""); }), "the group is empty: it needs a name");
  EXPECT_EQ(refusal_of([] { checks::name("group", "\n"); }), "");
}

TEST(Checks, RefuseANameThatIsTooLong) {
  // Only the size is looked at, so no such string has to exist.
  const std::string_view too_long{"x", RequestBuffer::kMaxArgumentBytes + 1};
  EXPECT_NE(refusal_of([&] { checks::name("group", too_long); }).find("512 MiB"),
            std::string::npos);
}

TEST(Checks, RefuseCountsThatTheServerReadsAnotherWay) {
  EXPECT_EQ(refusal_of([] { checks::count("count", 0); }),
            "count is 0: it has to be from 1 to 9223372036854775807");
  EXPECT_EQ(refusal_of([] { checks::count("count", kTooLarge); }),
            "count is 9223372036854775808: it has to be from 1 to 9223372036854775807");
  EXPECT_EQ(refusal_of([] { checks::count("count", kTooLarge - 1); }), "");
}

TEST(Checks, RefuseReadsThatCannotWork) {
  EXPECT_EQ(refusal_of([] { checks::read({}); }), "");
  EXPECT_EQ(refusal_of([] { checks::read({.block = 0ms}); }), "");
  EXPECT_EQ(refusal_of([] { checks::read({.count = 0}); }),
            "ReadOptions::count is 0: it has to be from 1 to 9223372036854775807");
  EXPECT_EQ(refusal_of([] { checks::read({.block = -1ms}); }),
            "block is -1 ms: it has to be 0 ms or more");
  EXPECT_NE(refusal_of([] { checks::read({.block = Milliseconds::max()}); }), "");
}

TEST(Checks, RefuseAutoclaimsThatCannotWork) {
  EXPECT_EQ(refusal_of([] { checks::autoclaim({}); }), "");
  EXPECT_EQ(refusal_of([] { checks::autoclaim({.min_idle = 0ms}); }), "");
  EXPECT_EQ(refusal_of([] { checks::autoclaim({.min_idle = -1ms}); }),
            "AutoclaimOptions::min_idle is -1 ms: it has to be 0 ms or more");
  EXPECT_EQ(refusal_of([] { checks::autoclaim({.count = 0}); }),
            "AutoclaimOptions::count is 0: it has to be from 1 to 576460752303423487");
  EXPECT_EQ(refusal_of([] { checks::autoclaim({.count = (kTooLarge - 1) / 16 + 1}); }),
            "AutoclaimOptions::count is 576460752303423488: it has to be from 1 to "
            "576460752303423487");
  EXPECT_EQ(refusal_of([] { checks::autoclaim({.count = (kTooLarge - 1) / 16}); }), "");
  EXPECT_EQ(refusal_of([] { checks::autoclaim({.max_pages = 0}); }),
            "AutoclaimOptions::max_pages is 0: it has to be 1 or more");
}

TEST(Checks, RefuseAnIdleTimeThatTheServerTakesForTheOpposite) {
  EXPECT_EQ(refusal_of([] { checks::claim({.idle = 1'000'000ms}, kNow); }), "");
  EXPECT_EQ(refusal_of([] { checks::claim({.idle = 1'000'001ms}, kNow); }),
            "ClaimOptions::idle is 1000001 ms: it has to be at most the time since 1970");
  EXPECT_EQ(refusal_of([] { checks::claim({.idle = -1ms}, kNow); }),
            "ClaimOptions::idle is -1 ms: it has to be 0 ms or more");
}

TEST(Checks, RefuseClaimsThatCannotWork) {
  EXPECT_EQ(refusal_of([] { checks::claim({}, kNow); }), "");
  EXPECT_EQ(refusal_of([] { checks::claim({.delivery_count = 0}, kNow); }), "");
  EXPECT_EQ(refusal_of([] { checks::claim({.delivery_count = kTooLarge}, kNow); }),
            "ClaimOptions::delivery_count is 9223372036854775808: it has to be at most "
            "9223372036854775807");
  EXPECT_EQ(refusal_of([] { checks::claim({.idle = 1ms, .time = kNow}, kNow); }),
            "ClaimOptions::time and ClaimOptions::idle are both given: they set the same thing, "
            "so only one of them can be");
  EXPECT_EQ(refusal_of(
                [] { checks::claim({.time = std::chrono::system_clock::time_point{-1ms}}, kNow); }),
            "ClaimOptions::time is -1 ms: it has to be 0 ms or more");
}

TEST(Checks, RefusePendingQueriesThatCannotWork) {
  EXPECT_EQ(refusal_of([] { checks::pending({}); }), "");
  EXPECT_EQ(refusal_of([] { checks::pending({.count = 0}); }),
            "PendingQuery::count is 0: it has to be from 1 to 9223372036854775807");
  EXPECT_EQ(refusal_of([] { checks::pending({.consumer = ""}); }),
            "the PendingQuery::consumer is empty: it needs a name");
  EXPECT_EQ(refusal_of([] { checks::pending({.min_idle = -1ms}); }),
            "PendingQuery::min_idle is -1 ms: it has to be 0 ms or more");
}

TEST(Checks, RefuseTimesThatAreTooLongToReckonWith) {
  constexpr Milliseconds kMost = std::chrono::hours{24 * 3'653};
  constexpr Milliseconds kOver = kMost + 1ms;
  const auto expect_bound = [&](std::string_view option, auto check) {
    EXPECT_EQ(refusal_of([&] { check(kMost); }), "") << option;
    EXPECT_EQ(refusal_of([&] { check(kOver); }),
              fmt::format("{} is {} ms: it has to be at most ten years", option, kOver.count()));
  };
  expect_bound("block", [](Milliseconds time) { checks::read({.block = time}); });
  expect_bound("min_idle", [](Milliseconds time) { checks::min_idle("min_idle", time); });
  expect_bound("AutoclaimOptions::min_idle",
               [](Milliseconds time) { checks::autoclaim({.min_idle = time}); });
  expect_bound("PendingQuery::min_idle",
               [](Milliseconds time) { checks::pending({.min_idle = time}); });
  expect_bound("StreamOptions::claim_min_idle",
               [](Milliseconds time) { checks::stream({.claim_min_idle = time}); });
}

TEST(Checks, TakeATimeSince1970ThatIsLongerThanAnOptionMayBe) {
  const auto now = std::chrono::system_clock::now();
  const auto since_1970 = std::chrono::floor<Milliseconds>(now.time_since_epoch());
  EXPECT_EQ(refusal_of([&] { checks::claim({.idle = since_1970}, now); }), "");
  EXPECT_EQ(refusal_of([&] { checks::claim({.time = now}, now); }), "");
}

TEST(Checks, RefuseTrimsThatCannotWork) {
  EXPECT_EQ(refusal_of([] { checks::trim(Trim::max_len(0)); }), "");
  EXPECT_EQ(refusal_of([] { checks::trim(Trim::max_len(kTooLarge)); }),
            "Trim::max_len is 9223372036854775808: it has to be at most 9223372036854775807");
  EXPECT_EQ(refusal_of([] { checks::trim(Trim::max_len(1).limit(kTooLarge)); }),
            "Trim::limit is 9223372036854775808: it has to be at most 9223372036854775807");
}

TEST(Checks, RefuseStreamsThatCannotWork) {
  EXPECT_EQ(refusal_of([] { checks::stream({}); }), "");
  EXPECT_EQ(refusal_of([] { checks::stream({.claim_min_idle = 0ms}); }),
            "StreamOptions::claim_min_idle is 0 ms: it has to be more than 0 ms");
  EXPECT_EQ(refusal_of([] { checks::stream({.retention = Trim::max_len(kTooLarge)}); }),
            "Trim::max_len is 9223372036854775808: it has to be at most 9223372036854775807");
}

TEST(Checks, RefuseAnEntryWithoutFields) {
  EXPECT_EQ(refusal_of([] { checks::entry({}, {}, OwnedFields{}); }),
            "an entry without fields: it has to have at least one");
  const Field first[] = {{"type", "t"}};
  EXPECT_EQ(refusal_of([&] { checks::entry({}, first, OwnedFields{}); }), "");
}

TEST(Checks, RefuseTheIdThatNoEntryCanHave) {
  EXPECT_EQ(refusal_of([] {
              checks::entry({.id = AddId::exactly({})}, {}, {{"f", "v"}});
            }),
            "AddOptions::id is 0-0: it has to be greater than that");
  EXPECT_EQ(refusal_of([] { checks::entry({.id = AddId::at_ms(0)}, {}, {{"f", "v"}}); }), "");
}

TEST(Checks, RefuseMoreArgumentsThanOneCommandMayHave) {
  const std::vector<Field> most((RequestBuffer::kMaxArguments - 3) / 2, Field{"f", "v"});
  EXPECT_EQ(refusal_of([&] { checks::entry({}, {}, most); }), "");
  const std::vector<Field> more(most.size() + 1, Field{"f", "v"});
  EXPECT_NE(refusal_of([&] { checks::entry({}, {}, more); }).find("1048576"), std::string::npos);
}

TEST(Checks, RefuseAValueThatIsTooLong) {
  // Only the size is looked at, so no such string has to exist.
  const Field most[] = {{"f", std::string_view{"x", RequestBuffer::kMaxArgumentBytes}}};
  const Field more[] = {{"f", std::string_view{"x", RequestBuffer::kMaxArgumentBytes + 1}}};
  EXPECT_EQ(refusal_of([&] { checks::entry({}, most, OwnedFields{}); }), "");
  EXPECT_NE(refusal_of([&] { checks::entry({}, more, OwnedFields{}); }).find("512 MiB"),
            std::string::npos);
  const auto refused = checks::refusal({}, more, OwnedFields{});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code(), Error::Code::kInvalidArgument);
  EXPECT_FALSE(checks::refusal({}, most, OwnedFields{}));
}

}  // namespace
}  // namespace millrace::detail
