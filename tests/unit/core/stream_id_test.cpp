#include <millrace/error.hpp>
#include <millrace/format.hpp>
#include <millrace/stream_id.hpp>

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <unordered_set>

namespace millrace {
namespace {

constexpr std::uint64_t kLargest = 18'446'744'073'709'551'615U;

TEST(StreamId, ParsesBothNumbers) {
  EXPECT_EQ(StreamId::parse("1526919030474-55"), (StreamId{1526919030474, 55}));
  EXPECT_EQ(StreamId::parse("0-0"), StreamId{});
  EXPECT_EQ(StreamId::parse("18446744073709551615-18446744073709551615"), StreamId::max());
}

TEST(StreamId, TakesMillisecondsAloneForTheFirstOfThem) {
  EXPECT_EQ(StreamId::parse("5"), (StreamId{5, 0}));
}

TEST(StreamId, TakesLeadingZerosAsTheServerDoes) {
  EXPECT_EQ(StreamId::parse("007-01"), (StreamId{7, 1}));
}

TEST(StreamId, ParsesNumbersOfAnyLength) {
  std::string digits;
  std::uint64_t number = 0;
  for (std::uint64_t digit = 1; digit <= 19; ++digit) {
    digits += static_cast<char>('0' + digit % 10);
    number = 10 * number + digit % 10;
    EXPECT_EQ(StreamId::parse(digits + "-" + digits), (StreamId{number, number})) << digits;
    // A letter at any place, the neighbours of the digits above all.
    for (std::size_t at = 0; at < digits.size(); ++at) {
      for (const char letter : {'/', ':', 'a', '\0', '\xB0', '\xFA'}) {
        std::string wrong = digits;
        wrong[at] = letter;
        EXPECT_EQ(StreamId::try_parse(wrong), std::nullopt) << wrong;
        EXPECT_EQ(StreamId::try_parse(wrong + "-0"), std::nullopt) << wrong;
      }
    }
  }
}

TEST(StreamId, RefusesEverythingElse) {
  for (const std::string text : {"",
                                 "-",
                                 "-5",
                                 "5-",
                                 "1-2-3",
                                 "1-*",
                                 "*",
                                 "$",
                                 "+",
                                 ">",
                                 " 1-1",
                                 "1-1 ",
                                 "1 -1",
                                 "+1-1",
                                 "1-+1",
                                 "0x1-1",
                                 "1.0-1",
                                 "18446744073709551616-0",
                                 "0-18446744073709551616",
                                 "1--1"}) {
    EXPECT_EQ(StreamId::try_parse(text), std::nullopt) << text;
    EXPECT_THROW(StreamId::parse(text), InvalidArgument) << text;
  }
  EXPECT_EQ(StreamId::try_parse(std::string_view{"1-1\0", 4}), std::nullopt);
}

TEST(StreamId, QuotesWhatItCannotParse) {
  try {
    StreamId::parse("notanid");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string{error.what()}.find("'notanid'"), std::string::npos) << error.what();
  }
}

TEST(StreamId, QuotesNoMoreThanAMessageCanShow) {
  const auto said = [](std::string_view text) -> std::string {
    try {
      StreamId::parse(text);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_TRUE(said("1-1\n[info] all is well").starts_with("'1-1\\x0a[info] all is well'"));
  EXPECT_LT(said(std::string(100'000, 'x')).size(), 400U);
}

TEST(StreamId, OrdersByMillisecondsThenSequence) {
  EXPECT_LT((StreamId{1, 9}), (StreamId{2, 0}));
  EXPECT_LT((StreamId{1, 1}), (StreamId{1, 2}));
  EXPECT_LT(StreamId::min(), StreamId::max());
  EXPECT_EQ(StreamId{}, StreamId::min());
}

TEST(StreamId, StepsAcrossTheEndOfAMillisecond) {
  EXPECT_EQ((StreamId{1, kLargest}).next(), (StreamId{2, 0}));
  EXPECT_EQ((StreamId{2, 0}).prev(), (StreamId{1, kLargest}));
  EXPECT_EQ((StreamId{1, 1}).next(), (StreamId{1, 2}));
  EXPECT_EQ((StreamId{1, 1}).prev(), (StreamId{1, 0}));
}

TEST(StreamId, DoesNotStepBeyondTheEnds) {
  EXPECT_THROW(StreamId::max().next(), InvalidArgument);
  EXPECT_THROW(StreamId::min().prev(), InvalidArgument);
}

TEST(StreamId, IsWrittenAsTheServerWritesIt) {
  const StreamId id{7, 1};
  std::ostringstream out;
  out << id;

  EXPECT_EQ(id.to_string(), "7-1");
  EXPECT_EQ(out.str(), "7-1");
  EXPECT_EQ(fmt::format("{}", id), "7-1");
  EXPECT_EQ(testing::PrintToString(id), "7-1");
  EXPECT_EQ(StreamId::max().to_string(), "18446744073709551615-18446744073709551615");
}

TEST(StreamId, HashesItsSequenceToo) {
  std::unordered_set<StreamId> ids;
  for (std::uint64_t seq = 0; seq < 100; ++seq) ids.insert({1, seq});

  EXPECT_EQ(ids.size(), 100U);
  EXPECT_NE(std::hash<StreamId>{}({1, 2}), std::hash<StreamId>{}({1, 3}));
}

}  // namespace
}  // namespace millrace
