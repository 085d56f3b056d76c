#include "protocol/request.hpp"

#include <millrace/error.hpp>

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
