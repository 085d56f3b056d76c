#include "net/reply_reader.hpp"

#include <millrace/error.hpp>

#include "unit/net/mapped_memory.hpp"
#include "unit/protocol/resp.hpp"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::string_literals;

/// All of a reply, so that two can be compared.
std::string show(ReplyView reply) {
  if (!reply.is_aggregate()) {
    return fmt::format("{}:{}:{}", static_cast<int>(reply.kind()), reply.integer(), reply.text());
  }
  std::string text = fmt::format("{}*{}[", static_cast<int>(reply.kind()), reply.size());
  for (const ReplyView element : reply) text += show(element) + " ";
  return text + "]";
}

/// Every reply of `bytes`, which come in pieces that end at `ends`.
std::vector<std::string> read(std::string_view bytes, const std::vector<std::size_t>& ends) {
  ReplyReader reader;
  std::vector<std::string> replies;
  std::size_t from = 0;
  for (const std::size_t end : ends) {
    // A copy that is gone after the feed: what the reply holds must be its own.
    const std::string piece{bytes.substr(from, end - from)};
    reader.feed(piece);
    while (const auto reply = reader.next()) replies.push_back(show(reply->root()));
    from = end;
  }
  EXPECT_TRUE(reader.is_drained());
  return replies;
}

std::vector<std::string> read(std::string_view bytes) { return read(bytes, {bytes.size()}); }

void expect_at_every_split(std::string_view bytes, const std::string& reply) {
  const std::vector<std::string> whole{reply};
  ASSERT_EQ(read(bytes), whole) << bytes;
  std::vector<std::size_t> each;
  for (std::size_t at = 1; at <= bytes.size(); ++at) {
    EXPECT_EQ(read(bytes, {at, bytes.size()}), whole) << "split at " << at << " of " << bytes;
    each.push_back(at);
  }
  EXPECT_EQ(read(bytes, each), whole) << "byte by byte: " << bytes;
}

/// What the bytes are is said by a parser that has nothing to do with hiredis.
void expect_same_at_every_split(std::string_view bytes) {
  expect_at_every_split(bytes, show(resp(bytes).root()));
}

const std::vector<std::string> kResp2{
    "+OK\r\n"s,
    "+\r\n"s,
    "-WRONGTYPE Operation against a key\r\n"s,
    ":0\r\n"s,
    ":-9223372036854775808\r\n"s,
    ":9223372036854775807\r\n"s,
    "$0\r\n\r\n"s,
    "$5\r\nhello\r\n"s,
    "$9\r\n\r\n\0$5\r\n*\xff\r\n"s,
    "$-1\r\n"s,
    "*-1\r\n"s,
    "*0\r\n"s,
    "*3\r\n:1\r\n$-1\r\n+x\r\n"s,
    "*1\r\n*1\r\n*1\r\n*0\r\n"s,
    "*3\r\n*0\r\n*-1\r\n-NOGROUP none\r\n"s,
    "*1\r\n*2\r\n$1\r\ns\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*2\r\n$3\r\n2-0\r\n*-1\r\n"s,
};

const std::vector<std::string> kResp3{
    "_\r\n"s,
    "#t\r\n"s,
    "#f\r\n"s,
    ",1.5\r\n"s,
    ",-inf\r\n"s,
    "%0\r\n"s,
    "%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n*2\r\n_\r\n#t\r\n"s,
    "~2\r\n+a\r\n+b\r\n"s,
    "%1\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n1-0\r\n_\r\n"s,
};

TEST(ReplyReader, ReadsEveryKindOfResp2WhereverItIsCut) {
  for (const auto& bytes : kResp2) expect_same_at_every_split(bytes);
}

TEST(ReplyReader, ReadsEveryKindOfResp3WhereverItIsCut) {
  if (!ReplyReader::reads_resp3()) GTEST_SKIP() << "this hiredis reads RESP2 only";
  for (const auto& bytes : kResp3) expect_same_at_every_split(bytes);
  expect_at_every_split("(-349289032840923850932485\r\n", "2:0:-349289032840923850932485");
  expect_at_every_split("=8\r\ntxt:some\r\n", "2:0:some");
  expect_at_every_split("=4\r\ntxt:\r\n", "2:0:");
}

TEST(ReplyReader, RefusesResp3WhereHiredisCannotReadIt) {
  if (ReplyReader::reads_resp3()) GTEST_SKIP() << "this hiredis reads RESP3";
  for (const auto& bytes : kResp3) EXPECT_THROW(read(bytes), ProtocolError) << bytes;
}

TEST(ReplyReader, KeepsTheOrderOfRepliesThatComeTogether) {
  EXPECT_EQ(read("+a\r\n:2\r\n$1\r\nc\r\n"), (std::vector<std::string>{"3:0:a", "1:2:", "2:0:c"}));
}

TEST(ReplyReader, LeavesPushesOut) {
  if (!ReplyReader::reads_resp3()) GTEST_SKIP() << "pushes are RESP3";
  const std::string bytes = ">2\r\n+invalidate\r\n*1\r\n+k\r\n:1\r\n>1\r\n+bye\r\n"s;
  EXPECT_EQ(read(bytes), std::vector<std::string>{"1:1:"});
  for (std::size_t at = 1; at < bytes.size(); ++at) {
    EXPECT_EQ(read(bytes, {at, bytes.size()}), std::vector<std::string>{"1:1:"});
  }
}

TEST(ReplyReader, SaysWhenBytesAreLeft) {
  ReplyReader reader;
  EXPECT_TRUE(reader.is_drained());
  for (const auto* const part : {"*", "*2\r\n", "*2\r\n:1\r\n", "$5\r\nhel", "+OK\r"}) {
    ReplyReader partly;
    partly.feed(part);
    EXPECT_FALSE(partly.next()) << part;
    EXPECT_FALSE(partly.is_drained()) << part;
  }
  reader.feed("+a\r\n+b\r\n");
  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.is_drained());
  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_TRUE(reader.is_drained());
}

TEST(ReplyReader, RefusesWhatIsNotResp) {
  const auto bad = {"HTTP/1.1 400 Bad Request\r\n", "*x\r\n", "$-2\r\n", ":1x\r\n", "\r\n",
                    "|1\r\n+ttl\r\n:1\r\n+OK\r\n"};  // attributes: no hiredis reads them
  for (const auto* const bytes : bad) {
    ReplyReader reader;
    reader.feed(bytes);
    EXPECT_THROW(reader.next(), ProtocolError) << bytes;
    EXPECT_THROW(reader.next(), ProtocolError) << "and stays refused: " << bytes;
  }
}

TEST(ReplyReader, TakesNoMemoryForElementsThatDoNotCome) {
  ReplyReader reader;
  reader.feed("*2147483647\r\n*2147483647\r\n$536870912\r\nx");
  EXPECT_FALSE(reader.next());
}

/// Bytes of many replies, a kilobyte each.
std::string many(std::size_t count) {
  const std::string one = "$1024\r\n" + std::string(1024, 'x') + "\r\n";
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += one;
  return bytes;
}

/// Of this thread alone: the machine may be busy.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

std::chrono::nanoseconds time_to_read(const std::string& bytes, std::size_t expected) {
  ReplyReader reader;
  const auto before = processor_time();
  reader.feed(bytes);
  std::size_t count = 0;
  while (reader.next()) ++count;
  EXPECT_EQ(count, expected);
  return processor_time() - before;
}

// hiredis moves the rest of its buffer forward after each kilobyte: fed at once, 32 MB took the
// time to move 500 GB.
TEST(ReplyReader, TakesTimeInProportionToABigFeed) {
  constexpr std::size_t kFew = 320;
  constexpr std::size_t kMany = 32'000;
  const auto few = many(kFew);
  const auto lots = many(kMany);
  auto small = time_to_read(few, kFew);
  for (int i = 0; i < 4; ++i) small = std::max(small, time_to_read(few, kFew));
  EXPECT_LT(time_to_read(lots, kMany), small * (kMany / kFew) * 4);
}

TEST(ReplyReader, ReadsAVeryBigString) {
  const std::string value(std::size_t{8} << 20, 'x');
  const std::string bytes = fmt::format("${}\r\n{}\r\n", value.size(), value);
  ReplyReader reader;
  std::optional<Reply> reply;
  for (std::size_t at = 0; at < bytes.size(); at += 65'536) {
    reader.feed(std::string_view{bytes}.substr(at, 65'536));
    while (auto next = reader.next()) reply = std::move(next);
  }
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->root().text() == value);
  reader.feed("+OK\r\n");
  EXPECT_TRUE(reader.next());
}

TEST(ReplyReader, GivesTheMemoryOfABigReplyBack) {
  const std::string value(std::size_t{64} << 20, 'x');
  if (mapped_memory() < value.size()) GTEST_SKIP() << "this heap does not say what it has";
  const std::string bytes = fmt::format("${}\r\n{}\r\n", value.size(), value);
  const auto before = mapped_memory();
  ReplyReader reader;
  reader.feed(bytes);
  ASSERT_TRUE(reader.next());
  EXPECT_FALSE(reader.next());
  EXPECT_LT(mapped_memory(), before + value.size() / 2)
      << "a connection would hold it while it is idle";
}

}  // namespace
}  // namespace millrace::detail
