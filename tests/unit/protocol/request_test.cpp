#include "protocol/request.hpp"

#include <millrace/error.hpp>

#include "resp.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::string_view_literals;

TEST(RequestBuffer, WritesWordsAsBulkStrings) {
  RequestBuffer request;
  request.command("XADD", 5).arg("k").arg("*").arg("name").arg("a\r\n\0"sv);

  EXPECT_EQ(request.bytes(),
            "*5\r\n$4\r\nXADD\r\n$1\r\nk\r\n$1\r\n*\r\n$4\r\nname\r\n$4\r\na\r\n\0\r\n"sv);
  EXPECT_EQ(request.commands(), 1U);
}

TEST(RequestBuffer, WritesNumbersAndIdsInDecimal) {
  RequestBuffer request;
  request.command("C", 5)
      .arg(std::uint64_t{0})
      .arg(std::numeric_limits<std::uint64_t>::max())
      .arg(StreamId{7, 1})
      .arg(StreamId::max());

  EXPECT_EQ(request.bytes(),
            "*5\r\n$1\r\nC\r\n$1\r\n0\r\n$20\r\n18446744073709551615\r\n$3\r\n7-1\r\n"
            "$41\r\n18446744073709551615-18446744073709551615\r\n");
}

TEST(RequestBuffer, WritesNumbersAndWordsOfAnySize) {
  std::uint64_t number = 0;
  for (std::uint64_t digit = 1; digit <= 19; ++digit) {
    number = 10 * number + digit % 10;
    for (const std::uint64_t each : {number, number - number % 10, number % 10 + 9}) {
      RequestBuffer request;
      request.command("C", 3).arg(each).arg(StreamId{each, each});
      const auto digits = std::to_string(each);
      EXPECT_EQ(request.bytes(), wire({"C", digits, digits + "-" + digits}));
    }
  }
  for (std::uint64_t power = 1; power < 10'000'000'000'000'000'000U; power *= 10) {
    RequestBuffer request;
    request.command("C", 3).arg(power).arg(power - 1);
    EXPECT_EQ(request.bytes(), wire({"C", std::to_string(power), std::to_string(power - 1)}));
  }
  std::string word;
  for (std::size_t size = 0; size < 3'000; size += size < 150 ? 1 : 97) {
    while (word.size() < size) word += static_cast<char>('a' + word.size() % 26);
    RequestBuffer request;
    request.command("C", 3).arg(word).arg("x");
    EXPECT_EQ(request.bytes(), wire({"C", word, "x"}));
  }
}

TEST(RequestBuffer, WritesFieldsOfAnySize) {
  for (const std::size_t name : {0U, 3U, 7U, 9U, 10U, 16U, 33U, 99U, 100U, 1'500U}) {
    for (std::size_t value = 0; value < 3'000; value += value < 120 ? 1 : 97) {
      const std::string words[] = {std::string(name, 'n'), std::string(value, 'v')};
      RequestBuffer request;
      request.command("C", 4).field({words[0], words[1]}).arg("x");
      ASSERT_EQ(request.bytes(), wire({"C", words[0], words[1], "x"}));
      ASSERT_EQ(request.commands(), 1U);
    }
  }
}

TEST(RequestBuffer, TakesBackACommandWithAFieldThatIsTooLong) {
  const std::string_view too_long{"x", RequestBuffer::kMaxArgumentBytes + 1};
  RequestBuffer request;
  EXPECT_THROW(request.command("C", 3).field({"n", too_long}), InvalidArgument);
  EXPECT_THROW(request.command("C", 3).field({too_long, "v"}), InvalidArgument);
  EXPECT_EQ(request.bytes(), "");
}

TEST(RequestBuffer, KnowsWhatAnswersACommand) {
  RequestBuffer request;
  request.command("A", 1);
  request.command("B", 2).answered_by(ReplyShape::kRead).arg("b");
  EXPECT_EQ(request.shape_of(0), ReplyShape::kAny);
  EXPECT_EQ(request.shape_of(1), ReplyShape::kRead);
  EXPECT_EQ(request.shape_of(2), ReplyShape::kAny);

  const std::string_view too_long{"x", RequestBuffer::kMaxArgumentBytes + 1};
  request.command("C", 2).answered_by(ReplyShape::kEntries);
  EXPECT_THROW(request.arg(too_long), InvalidArgument);
  request.command("D", 1);
  EXPECT_EQ(request.shape_of(2), ReplyShape::kAny) << "what was taken back is said of nobody else";

  request.clear();
  request.command("E", 1);
  request.command("F", 1);
  EXPECT_EQ(request.shape_of(1), ReplyShape::kAny);
}

TEST(RequestBuffer, SaysWhereEachCommandEnds) {
  RequestBuffer request;
  request.command("A", 1);
  request.command("B", 2).arg("");

  ASSERT_EQ(request.commands(), 2U);
  EXPECT_EQ(request.ends()[0], std::string{"*1\r\n$1\r\nA\r\n"}.size());
  EXPECT_EQ(request.ends()[1], request.bytes().size());
}

TEST(RequestBuffer, RefusesTooManyArgumentsByNameOfTheLimit) {
  RequestBuffer request;
  request.command("A", 1);
  const std::string before{request.bytes()};
  try {
    request.command("XADD", RequestBuffer::kMaxArguments + 1);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string{error.what()}.find("1048576"), std::string::npos) << error.what();
  }
  EXPECT_EQ(request.bytes(), before);
}

TEST(RequestBuffer, TakesBackACommandWithAnArgumentThatIsTooLong) {
  // Only the size is looked at, so no such string has to exist.
  const std::string_view too_long{"x", RequestBuffer::kMaxArgumentBytes + 1};
  RequestBuffer request;
  request.command("A", 1);
  const std::string before{request.bytes()};
  request.command("XADD", 3).arg("k");
  try {
    request.arg(too_long);
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string{error.what()}.find("512 MiB"), std::string::npos) << error.what();
  }
  EXPECT_EQ(request.bytes(), before);
  request.command("B", 1);
  EXPECT_EQ(request.commands(), 2U);
}

TEST(RequestBuffer, IsEmptyOnceItIsCleared) {
  RequestBuffer request;
  request.command("A", 1);
  request.clear();

  EXPECT_TRUE(request.bytes().empty());
  EXPECT_EQ(request.commands(), 0U);
  request.command("B", 1);
  EXPECT_EQ(request.bytes(), "*1\r\n$1\r\nB\r\n");
}

}  // namespace
}  // namespace millrace::detail
