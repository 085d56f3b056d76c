#include "protocol/reply.hpp"

#include "resp.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

TEST(Reply, IsATreeInTheOrderItWasBuilt) {
  const Reply reply = resp("*3\r\n:1\r\n*2\r\n+OK\r\n$-1\r\n$2\r\nhi\r\n");
  const ReplyView root = reply.root();

  EXPECT_EQ(root.kind(), ReplyKind::kArray);
  EXPECT_EQ(root.size(), 3U);
  EXPECT_EQ(root[0].integer(), 1);
  EXPECT_EQ(root[1][0].text(), "OK");
  EXPECT_TRUE(root[1][1].is_nil());
  EXPECT_EQ(root[2].text(), "hi");

  std::vector<ReplyKind> kinds;
  for (const ReplyView element : root) kinds.push_back(element.kind());
  EXPECT_EQ(kinds, (std::vector{ReplyKind::kInteger, ReplyKind::kArray, ReplyKind::kString}));
}

TEST(Reply, IsNilBeyondItsEnd) {
  const Reply reply = resp("*1\r\n:1\r\n");
  EXPECT_TRUE(reply.root()[1].is_nil());
  EXPECT_TRUE(reply.root()[0][0].is_nil());
  EXPECT_EQ(reply.root()[0].begin(), reply.root()[0].end());
  EXPECT_TRUE(Reply{}.root().is_nil());
  EXPECT_EQ(ReplyView{}.text(), "");
  EXPECT_EQ(ReplyView{}.begin(), ReplyView{}.end());
}

TEST(Reply, CountsBothHalvesOfAMap) {
  const Reply reply = resp("%1\r\n$1\r\nk\r\n:5\r\n");
  EXPECT_EQ(reply.root().kind(), ReplyKind::kMap);
  EXPECT_EQ(reply.root().size(), 2U);
  EXPECT_EQ(reply.root()[1].integer(), 5);
}

TEST(Reply, KeepsItsTextWhereverTheBytesGo) {
  Reply reply = resp("*1\r\n$5\r\nhello\r\n");
  const std::string_view text = reply.root()[0].text();
  Reply moved = std::move(reply);
  const ByteArena bytes = std::move(moved).release_bytes();

  EXPECT_EQ(text, "hello");
}

}  // namespace
}  // namespace millrace::detail
