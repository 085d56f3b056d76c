#include "worker/scripts.hpp"

#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<StreamId>;

class ScriptsTest : public ::testing::Test {
 public:
  /// Answers with `replies`, one after another.
  void answers(std::deque<std::string> replies) { replies_ = std::move(replies); }

  /// What a script is run on.
  Reply operator()(const CallSpec& spec, const Script& script,
                   std::span<const std::string_view> keys, std::span<const std::string_view> args) {
    EXPECT_EQ(spec.key, "s");
    EXPECT_EQ(std::vector<std::string>(keys.begin(), keys.end()), Words{"s"}) << "all keys";
    EXPECT_FALSE(script.source.starts_with("#!")) << "with a shebang OOM would refuse it";
    EXPECT_EQ(script.sha1.size(), 40U);
    asked_.emplace_back(args.begin(), args.end());
    const std::string reply = replies_.front();
    replies_.pop_front();
    return resp(reply);
  }

 protected:
  static constexpr scripts::Consumer kAlice{"s", "g", "alice"};
  std::deque<std::string> replies_;
  std::vector<Words> asked_;
};

constexpr const char* kPage =
    "*4\r\n$3\r\n9-0\r\n"
    "*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"
    "*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nw\r\n"
    "*1\r\n$3\r\n2-0\r\n"
    "*2\r\n:5\r\n:0\r\n";

TEST_F(ScriptsTest, TakeAsksForAPageAndGivesEntriesWithTheirCounts) {
  answers({kPage});
  const auto taken = scripts::take(*this, kAlice, 30s, {4, 2}, 16);
  EXPECT_EQ(asked_, (std::vector<Words>{{"g", "alice", "30000", "4-2", "16"}}));
  EXPECT_EQ(taken.entries.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(taken.entries[1].at("f"), "w");
  EXPECT_EQ(taken.deliveries, (std::vector<std::uint64_t>{5, 0}));
  EXPECT_EQ(taken.deleted_ids, (Ids{{2, 0}}));
  EXPECT_EQ(taken.next_cursor, (StreamId{9, 0}));
}

TEST_F(ScriptsTest, RecoverAsksFromTheBeginningAndThenAfterAnId) {
  answers({kPage, kPage});
  EXPECT_EQ(scripts::recover(*this, kAlice, {}, 64).entries.size(), 2U);
  scripts::recover(*this, kAlice, {9, 0}, 64);
  EXPECT_EQ(asked_, (std::vector<Words>{{"g", "alice", "-", "64"}, {"g", "alice", "(9-0", "64"}}));
}

TEST_F(ScriptsTest, PagesNameWhatIsToBeLeftOut) {
  answers({kPage, kPage});
  const Ids left_out{{5, 0}, {6, 1}};
  scripts::take(*this, kAlice, 30s, {}, 16, left_out);
  scripts::recover(*this, kAlice, {}, 16, left_out);
  EXPECT_EQ(asked_, (std::vector<Words>{{"g", "alice", "30000", "0-0", "16", "5-0", "6-1"},
                                        {"g", "alice", "-", "16", "5-0", "6-1"}}));
}

TEST_F(ScriptsTest, AnEmptyPageIsNoSurprise) {
  answers({"*4\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n"});
  const auto taken = scripts::take(*this, kAlice, 30s, {}, 16);
  EXPECT_TRUE(taken.entries.empty());
  EXPECT_EQ(taken.next_cursor, StreamId{});
}

TEST_F(ScriptsTest, OtherCountsThanEntriesAreRefused) {
  answers({"*4\r\n$3\r\n0-0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*0\r\n*0\r\n"});
  EXPECT_THROW(scripts::take(*this, kAlice, 30s, {}, 16), ProtocolError);
  answers({"*4\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*1\r\n:1\r\n"});
  EXPECT_THROW(scripts::take(*this, kAlice, 30s, {}, 16), ProtocolError);
}

TEST_F(ScriptsTest, RepliesOfAnotherShapeAreRefused) {
  for (const std::string reply :
       {"+OK\r\n", "$-1\r\n", ":1\r\n", "*0\r\n", "*4\r\n$1\r\nx\r\n*0\r\n*0\r\n*0\r\n",
        "*4\r\n$3\r\n0-0\r\n:1\r\n*0\r\n*0\r\n",
        "*4\r\n$3\r\n0-0\r\n*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*0\r\n*1\r\n:-"
        "1\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::take(*this, kAlice, 30s, {}, 16), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, HoldNamesEachEntryWithTheCountItHasAndIsToHave) {
  answers({"*3\r\n:1\r\n:0\r\n:2\r\n"});
  const std::vector<scripts::Hold> holds{{{1, 0}, 1, 2}, {{2, 0}, 7, 7}, {{3, 0}, 1, 0}};
  using enum scripts::Holding;
  EXPECT_EQ(scripts::hold(*this, kAlice, 250ms, holds),
            (std::vector<scripts::Holding>{kOurs, kNotOurs, kTrimmed}));
  EXPECT_EQ(asked_, (std::vector<Words>{
                        {"g", "alice", "250", "1-0", "1", "2", "2-0", "7", "7", "3-0", "1", "0"}}));
}

TEST_F(ScriptsTest, HoldRefusesAnAnswerForOtherEntries) {
  const std::vector<scripts::Hold> holds{{{1, 0}, 1, 2}};
  for (const std::string reply : {"*0\r\n", "*2\r\n:1\r\n:1\r\n", "$-1\r\n", "+OK\r\n"}) {
    answers({reply});
    EXPECT_THROW(scripts::hold(*this, kAlice, 0ms, holds), ProtocolError) << reply;
  }
}

TEST_F(ScriptsTest, ReleaseAsksForAFewAtATimeAndGivesTheIdsThatWereOurs) {
  std::vector<scripts::Hold> holds;
  for (std::uint64_t i = 1; i <= scripts::kMostIds + 2; ++i) holds.push_back({{i, 0}, 1, 0});
  std::string first = "*64\r\n:0\r\n";
  for (std::size_t i = 1; i < scripts::kMostIds; ++i) first += ":1\r\n";
  answers({first, "*2\r\n:0\r\n:1\r\n"});

  const Ids released = scripts::release(*this, kAlice, 30s, holds);
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_[0].size(), 3 + 3 * scripts::kMostIds);
  EXPECT_EQ(asked_[0][2], "30000") << "idle for long enough for a peer to take it";
  EXPECT_EQ(asked_[1].size(), 3U + 3 * 2);
  EXPECT_EQ(released.size(), scripts::kMostIds);
  EXPECT_EQ(released.front(), (StreamId{2, 0}));
  EXPECT_EQ(released.back(), (StreamId{scripts::kMostIds + 2, 0}));
}

TEST_F(ScriptsTest, ReleaseOfNothingAsksNobody) {
  EXPECT_TRUE(scripts::release(*this, kAlice, 30s, {}).empty());
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace millrace::detail
