#include "worker/group.hpp"

#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

std::string bulk(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }
std::string bulk(StreamId id) { return bulk(id.to_string()); }
std::string entry(StreamId id) {
  return fmt::format("*2\r\n{}*2\r\n$1\r\nf\r\n$1\r\nv\r\n", bulk(id));
}

/// A stream with a group and its record, as far as Group asks about them.
struct FakeStream {
  bool exists = true;
  std::set<StreamId> entries{};
  StreamId last_id{};
  StreamId max_deleted{};
  std::uint64_t entries_added = 0;
  std::optional<StreamId> group{};  ///< Where it has read to. None: there is no group.
  std::string refusal{};            ///< Of XGROUP CREATE.
  std::string inspection_refusal{};
  std::optional<std::string> created_at{};
  // The record.
  std::optional<std::string> making{};
  std::string position{};
  std::string mark{};
  bool record_is_gone = false;
  bool name_is_free = true;

  void add(StreamId id) {
    entries.insert(id);
    last_id = id;
    ++entries_added;
  }
  /// Made new, with these entries and without the group. The record is another key.
  void become(const std::vector<StreamId>& ids) {
    *this = {.making = making, .position = position, .mark = mark};
    for (const StreamId id : ids) add(id);
  }

  std::string answer(const Words& words) {
    if (words[0] == "EVALSHA") return open(words);
    if (words[0] == "XRANGE") return range(StreamId::parse(words[2]));
    if (words[0] == "HMGET") {
      EXPECT_EQ(words, (Words{"HMGET", "{s}:millrace:g", "made", "mark"}));
      if (record_is_gone) return "*2\r\n$-1\r\n$-1\r\n";
      return "*2\r\n" + bulk("m1") + (mark.empty() ? "$-1\r\n" : bulk(mark));
    }
    if (!inspection_refusal.empty()) return inspection_refusal;
    return info();
  }

 private:
  /// As open.lua does.
  std::string open(const Words& words) {
    EXPECT_EQ(script_name(words[1]), "open");
    const Words args{words.begin() + 3 + std::stol(words[2]), words.end()};
    const std::string& known = args[7];
    const std::string& wanted = args[8];
    if (!group && !refusal.empty()) return refusal;
    const bool again = !wanted.empty() && (!making || *making == known);
    std::string start = wanted.empty() ? args[3] : wanted;
    if (!again && !wanted.empty() && !position.empty()) start = position;
    const bool made = !group || again;
    if (made) {
      created_at = start;
      exists = true;
      group = start == "$" ? last_id : StreamId::parse(start);
    }
    if (made || !making) {
      making = args[6];
      position = start;
      if (again) mark = start;
    }
    const std::string added =
        inspection_refusal.empty() ? fmt::format(":{}\r\n", entries_added) : bulk("");
    return fmt::format("*5\r\n:{}\r\n{}{}:{}\r\n{}", int{made}, bulk(*making), bulk(start),
                       int{name_is_free}, added);
  }
  std::string range(StreamId id) const {
    return entries.contains(id) ? "*1\r\n" + entry(id) : "*0\r\n";
  }
  std::string info() const {
    if (!exists) return "-ERR no such key\r\n";
    return fmt::format("*14\r\n{}:{}\r\n{}:{}\r\n", bulk("length"), entries.size(), bulk("groups"),
                       int{group.has_value()}) +
           bulk("last-generated-id") + bulk(last_id) + bulk("max-deleted-entry-id") +
           bulk(max_deleted) + bulk("entries-added") + fmt::format(":{}\r\n", entries_added) +
           bulk("first-entry") + (entries.empty() ? "$-1\r\n" : entry(*entries.begin())) +
           bulk("last-entry") + (entries.empty() ? "$-1\r\n" : entry(*entries.rbegin()));
  }
};

class GroupTest : public ::testing::Test {
 protected:
  GroupTest() {
    for (const std::uint64_t i : {1U, 2U, 3U, 4U, 5U}) stream_.add({i, 0});
  }

  /// The group has read to `id`, and we were given that entry; then the group was looked at, and
  /// was done up to `mark`.
  void given_read_to(StreamId id, std::optional<StreamId> mark = std::nullopt) {
    group_.open(connection_);
    stream_.group = id;
    group_.seen(id);
    look(mark.value_or(id));
  }
  /// As each renewal does.
  void look(std::optional<StreamId> mark) {
    group_.renewed(clock_.now(), mark, stream_.entries_added);
  }
  void lose_the_group() {
    stream_.group.reset();
    stream_.created_at.reset();
  }

  test::ManualClock clock_;
  FakeStream stream_;
  ScriptedConnection connection_{[this](const Words& words) { return stream_.answer(words); }};
  WorkerConfig config_{.key = "s",
                       .group = "g",
                       .consumer = "alice",
                       .record = "{s}:millrace:g",
                       .min_idle = Milliseconds{30'000},
                       .lease_renew_every = Milliseconds{10'000}};
  Group group_{config_};
};

TEST_F(GroupTest, IsMadeWhereItWasTold) {
  group_.open(connection_);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, SaysWhetherTheConsumersNameWasFree) {
  EXPECT_TRUE(group_.open(connection_));
  stream_.name_is_free = false;
  EXPECT_FALSE(group_.open(connection_));
}

TEST_F(GroupTest, IsOpenOnceTheRecordWasWritten) {
  EXPECT_FALSE(group_.is_open());
  look(std::nullopt);
  EXPECT_TRUE(group_.is_open());
  group_.renewed(clock_.now() - Milliseconds{1}, std::nullopt, std::nullopt);
  EXPECT_EQ(group_.renewed_at(), clock_.now()) << "an older request says nothing";
}

TEST_F(GroupTest, KeepsItsMarkWhereTheServerDidNotSay) {
  given_read_to({3, 0});
  look(std::nullopt);
  lose_the_group();
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{3, 0}));
}

TEST_F(GroupTest, IsMadeForWhatComesFromNowOn) {
  config_.group_start = GroupStart::now();
  group_.open(connection_);
  EXPECT_EQ(stream_.created_at, "$");
}

TEST_F(GroupTest, IsLeftWhereItIsIfItIsThere) {
  stream_.group = StreamId{3, 0};
  EXPECT_NO_THROW(group_.open(connection_));
  EXPECT_EQ(stream_.created_at, std::nullopt);
}

TEST_F(GroupTest, NeedsNoMemoryAndNoPermissionIfItIsThere) {
  stream_.group = StreamId{3, 0};
  for (const std::string refusal : {"-OOM no memory\r\n", "-NOPERM no\r\n"}) {
    stream_.refusal = refusal;
    EXPECT_NO_THROW(group_.open(connection_)) << refusal;
  }
  stream_.group.reset();
  EXPECT_THROW(group_.open(connection_), PermissionError);
  stream_.exists = false;
  EXPECT_THROW(group_.open(connection_), PermissionError) << "the first refusal is what counts";
}

TEST_F(GroupTest, DoesNotOpenOnAKeyOfAnotherType) {
  stream_.refusal = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
  EXPECT_THROW(group_.open(connection_), WrongTypeError);
}

TEST_F(GroupTest, IsMadeAgainAtItsPositionWhereTheStreamIsTheSame) {
  given_read_to({3, 0});
  lose_the_group();
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_FALSE(remade.another_stream);
  EXPECT_TRUE(remade.created);
  EXPECT_EQ(remade.position, (StreamId{3, 0}));
  EXPECT_EQ(stream_.created_at, "3-0");
}

TEST_F(GroupTest, IsMadeAgainBeforeItsLowestPendingEntry) {
  given_read_to({4, 0}, StreamId{2, 0}.prev());
  lose_the_group();
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_LT(remade.position, (StreamId{2, 0}));
  EXPECT_GE(remade.position, (StreamId{1, 0})) << "1-0 was done";
}

TEST_F(GroupTest, IsMadeAgainWhereItWasSetBackTo) {
  given_read_to({4, 0}, StreamId{3, 0}.prev());
  look(StreamId{1, 0});
  lose_the_group();
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{1, 0}));
}

TEST_F(GroupTest, IsMadeAgainAtAnOldMarkWhichOnlyRepeats) {
  given_read_to({2, 0});
  stream_.group = StreamId{5, 0};
  group_.seen({5, 0});  // and nobody looked since
  lose_the_group();
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{2, 0}));
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningWhereTheStreamWasMissing) {
  given_read_to({3, 0});
  stream_ = {.exists = false, .making = stream_.making, .mark = "3-0"};
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_TRUE(remade.another_stream);
  EXPECT_TRUE(remade.created);
  EXPECT_EQ(remade.position, StreamId{});
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningOfANewStreamWithSmallerIds) {
  given_read_to({4, 0});
  stream_.become({{1, 0}, {2, 0}, {3, 0}});
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningOfANewStreamWithLargerIds) {
  given_read_to({4, 0});
  stream_.become({{8, 0}, {9, 0}});
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningWhereItsRecordWentWithTheStream) {
  given_read_to({4, 0});  // and the new stream has the same ids, as many as before
  stream_.record_is_gone = true;
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningOfANewStreamThatHasTheIdThatWasSeenLast) {
  given_read_to({4, 0});
  stream_.become({{4, 0}, {9, 0}});  // two entries, where there had been five
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningOfANewStreamAlthoughNothingOfTheOldOneWasSeen) {
  config_.group_start = GroupStart::now();
  group_.open(connection_);
  look(StreamId{5, 0});
  stream_.become({{1, 0}, {2, 0}, {3, 0}, {3, 1}, {3, 2}, {3, 3}});
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsNotConfusedByALookAtTheNewStream) {
  given_read_to({4, 0});
  stream_.become({{8, 0}, {9, 0}});
  look(std::nullopt);  // the keeper comes between
  EXPECT_TRUE(group_.remake(connection_).another_stream);
}

TEST_F(GroupTest, IsNotConfusedByALookAtTheNewStreamWhereAPeerHasMadeTheGroup) {
  given_read_to({4, 0});
  stream_.become({{8, 0}, {9, 0}});
  stream_.group = StreamId{};
  stream_.making = "a peer's";
  stream_.position = "0-0";
  look(std::nullopt);
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_TRUE(remade.another_stream);
  EXPECT_FALSE(remade.created);
}

TEST_F(GroupTest, TakesAStreamWhoseLastSeenEntryWasDeletedForTheSame) {
  given_read_to({4, 0});
  stream_.entries.erase({4, 0});
  stream_.max_deleted = {4, 0};
  lose_the_group();
  EXPECT_FALSE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "4-0");
}

TEST_F(GroupTest, TakesAStreamThatWasTrimmedPastTheLastSeenEntryForTheSame) {
  given_read_to({3, 0});
  stream_.entries = {{5, 0}};
  lose_the_group();
  EXPECT_FALSE(group_.remake(connection_).another_stream);
  stream_.entries.clear();
  lose_the_group();
  EXPECT_FALSE(group_.remake(connection_).another_stream) << "to the last entry";
}

TEST_F(GroupTest, StartsFromTheBeginningWhereItCouldNotLook) {
  stream_.inspection_refusal = "-NOPERM no\r\n";
  stream_.group = StreamId{};
  EXPECT_NO_THROW(group_.open(connection_));
  stream_.inspection_refusal.clear();
  group_.seen({3, 0});
  lose_the_group();
  stream_.mark.clear();
  EXPECT_EQ(group_.remake(connection_).position, StreamId{}) << "everything once more, none less";
}

TEST_F(GroupTest, SaysWhereAPeerWasFirst) {
  given_read_to({3, 0});
  lose_the_group();
  stream_.group = StreamId{3, 0};
  stream_.making = "a peer's";
  stream_.position = "2-0";
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_FALSE(remade.created);
  EXPECT_EQ(remade.position, (StreamId{2, 0})) << "where the peer has put it";
  EXPECT_EQ(stream_.created_at, std::nullopt);

  lose_the_group();
  EXPECT_TRUE(group_.remake(connection_).created) << "the peer's making is known now";
}

TEST_F(GroupTest, IsMadeAgainWhereAPeerWasFirstAndItIsGoneAgain) {
  given_read_to({3, 0});
  lose_the_group();
  stream_.making = "a peer's";
  stream_.position = "2-0";
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_TRUE(remade.created);
  EXPECT_EQ(stream_.created_at, "2-0");
}

TEST_F(GroupTest, IsSetBackWhereSomebodyMadeItWhoIsNoneOfUs) {
  given_read_to({3, 0});
  lose_the_group();
  stream_.group = StreamId{5, 0};  // by XGROUP CREATE s g $
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_TRUE(remade.created);
  EXPECT_EQ(stream_.group, (StreamId{3, 0})) << "4-0 and 5-0 would be lost";
}

TEST_F(GroupTest, IsMadeAgainAtTheMarkThatAPeerHasRecordedIfThatIsLater) {
  given_read_to({2, 0});
  lose_the_group();
  stream_.mark = "4-0";
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{4, 0}));
  lose_the_group();
  stream_.mark = "(3-0";
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{4, 0})) << "an older one says less";
}

TEST_F(GroupTest, IsMadeAgainJustBeforeTheEntryThatTheRecordNames) {
  given_read_to({1, 0});
  lose_the_group();
  stream_.mark = "(4-0";
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{4, 0}.prev()));
}

TEST_F(GroupTest, BelievesNoRecordOfAStreamThatIsGone) {
  given_read_to({4, 0});
  stream_.become({{8, 0}, {9, 0}});
  stream_.mark = "8-0";
  EXPECT_EQ(group_.remake(connection_).position, StreamId{});
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, TakesARecordThatSaysNothingForNone) {
  given_read_to({3, 0});
  for (const std::string mark : {"", "(", "x"}) {
    lose_the_group();
    stream_.mark = mark;
    EXPECT_EQ(group_.remake(connection_).position, (StreamId{3, 0})) << mark;
  }
}

TEST_F(GroupTest, ForgetsTheOldStreamOnceItIsMadeInANewOne) {
  given_read_to({4, 0});
  stream_.become({{1, 0}});
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  lose_the_group();
  EXPECT_EQ(group_.remake(connection_).position, StreamId{});
}

TEST_F(GroupTest, PassesOnWhyItCannotBeMade) {
  given_read_to({3, 0});
  lose_the_group();
  stream_.refusal = "-NOPERM no\r\n";
  EXPECT_THROW(group_.remake(connection_), PermissionError);
  stream_.refusal.clear();
  EXPECT_EQ(group_.remake(connection_).position, (StreamId{3, 0})) << "and knows as much as before";
}

TEST_F(GroupTest, PassesOnThatTheConnectionIsLost) {
  ScriptedConnection lost{[](const Words&) -> std::string { throw IoError{"lost"}; }};
  EXPECT_THROW(group_.open(lost), IoError);
  EXPECT_THROW(group_.remake(lost), IoError);
}

}  // namespace
}  // namespace millrace::detail
