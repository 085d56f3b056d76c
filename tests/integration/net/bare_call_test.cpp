#include "net/pool.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "support/stream_test.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace millrace::test {
namespace {

using detail::Pool;
using detail::Reply;
using detail::ReplyView;
using detail::RequestBuffer;

/// Commands that EventStream does not have, as the library sends them and reads their replies.
class BareCall : public StreamTest {
 protected:
  static void write(RequestBuffer& request, std::initializer_list<std::string_view> words) {
    request.command(*words.begin(), words.size());
    for (auto word = words.begin() + 1; word != words.end(); ++word) request.arg(*word);
  }

  Reply call(std::initializer_list<std::string_view> words) {
    return Pool::of(s().pool())
        .call({.command = *words.begin(), .key = "s"}, [&](RequestBuffer& r) { write(r, words); });
  }
};

TEST_P(BareCall, AKeyThatIsNamedTwiceKeepsBothLists) {
  given_three_entries();
  const Reply reply = call({"XREAD", "STREAMS", "s", "s", "0", "2-0"});
  std::vector<std::string> lists;
  const auto list = [&](ReplyView key, ReplyView entries) {
    lists.push_back(std::string{key.text()} + ' ' + std::to_string(entries.size()));
  };
  const ReplyView root = reply.root();
  if (GetParam() == 3) {
    ASSERT_EQ(root.size(), 4U);
    list(root[0], root[1]);
    list(root[2], root[3]);
  } else {
    ASSERT_EQ(root.size(), 2U);
    list(root[0][0], root[0][1]);
    list(root[1][0], root[1][1]);
  }
  EXPECT_EQ(lists, (std::vector<std::string>{"s 3", "s 1"}));
}

TEST_P(BareCall, ABackwardRangeMayLeaveItsEndsOut) {
  given_three_entries();
  const auto backwards = [&](RangeEnd end, RangeStart start) {
    return detail::decode::entries(Pool::of(s().pool())
                                       .call({.command = "XREVRANGE", .key = "s"},
                                             [&](RequestBuffer& request) {
                                               detail::commands::xrevrange(request, "s", end, start,
                                                                           10);
                                             }))
        .ids();
  };
  EXPECT_EQ(backwards({}, {}), (Ids{{3, 0}, {2, 0}, {1, 0}}));
  EXPECT_EQ(backwards(StreamId{3, 0}, StreamId{2, 0}), (Ids{{3, 0}, {2, 0}}));
  EXPECT_EQ(backwards(RangeEnd::before({3, 0}), StreamId{1, 0}), (Ids{{2, 0}, {1, 0}}));
  EXPECT_EQ(backwards(StreamId{3, 0}, RangeStart::after({1, 0})), (Ids{{3, 0}, {2, 0}}));
  EXPECT_EQ(backwards(RangeEnd::before({3, 0}), RangeStart::after({1, 0})), (Ids{{2, 0}}));
  EXPECT_EQ(backwards(RangeEnd::before({2, 0}), RangeStart::after({1, 0})), Ids{});
}

TEST_P(BareCall, AnErrorInsideATransactionIsOneOfItsResults) {
  given_three_entries();
  Reply exec;
  const auto result =
      Pool::of(s().pool())
          .pipeline(
              {.command = "EXEC", .key = "s"},
              [&](RequestBuffer& request) {
                write(request, {"MULTI"});
                write(request, {"XREADGROUP", "GROUP", "nogroup", "alice", "STREAMS", "s", ">"});
                write(request, {"XLEN", "s"});
                write(request, {"EXEC"});
              },
              [&](std::size_t index, Reply reply) {
                if (index == 3) exec = std::move(reply);
              });
  EXPECT_FALSE(result.error.has_value());
  EXPECT_EQ(result.replies, 4U);
  ASSERT_EQ(exec.root().size(), 2U);
  EXPECT_TRUE(exec.root()[0].is_error());
  EXPECT_THAT(std::string{exec.root()[0].text()}, ::testing::StartsWith("NOGROUP "));
  EXPECT_EQ(exec.root()[1].integer(), 3);
}

TEST_P(BareCall, AServersErrorIsThrownAsItsClass) {
  append(s(), {{1, 0}});
  EXPECT_THROW(call({"XREADGROUP", "GROUP", "g", "a", "STREAMS", "s", ">"}), NoGroupError);
  EXPECT_EQ(call({"XLEN", "s"}).root().integer(), 1);
  EXPECT_EQ(s().pool().stats().created, 1U);
}

TEST_P(BareCall, AnOptionThatAnOlderServerDoesNotHaveIsAnOrdinaryError) {
  if (server().version().is_redis_from(8, 4)) GTEST_SKIP() << "this server has it";
  given_three_entries();
  const auto error = thrown<ServerError>([&] {
    call({"XREADGROUP", "GROUP", "g", "a", "CLAIM", "0", "STREAMS", "s", ">"});
  });
  EXPECT_EQ(error.prefix(), "ERR");
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
}

MILLRACE_ON_BOTH_PROTOCOLS(BareCall);

}  // namespace
}  // namespace millrace::test
