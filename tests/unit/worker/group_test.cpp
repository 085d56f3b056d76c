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

/// A stream with a group, as far as Group asks about it.
struct FakeStream {
  bool exists = true;
  std::set<StreamId> entries{};
  StreamId last_id{};
  StreamId max_deleted{};
  std::uint64_t entries_added = 0;
  std::optional<StreamId> group{};  ///< Where it has read to. None: there is no group.
  std::optional<StreamId> lowest_pending{};
  std::string refusal{};  ///< Of XGROUP CREATE.
  std::string inspection_refusal{};
  std::optional<std::string> created_at{};

  void add(StreamId id) {
    entries.insert(id);
    last_id = id;
    ++entries_added;
  }
  /// Made new, with these entries and without the group.
  void become(const std::vector<StreamId>& ids) {
    *this = {};
    for (const StreamId id : ids) add(id);
  }

  std::string answer(const Words& words) {
    if (words[0] == "XGROUP") return create(words);
    if (words[0] == "XRANGE") return range(StreamId::parse(words[2]));
    if (!inspection_refusal.empty()) return inspection_refusal;
    if (words[0] == "XPENDING") return pending();
    if (words[1] == "GROUPS") return groups();
    return info();
  }

 private:
  std::string create(const Words& words) {
    if (!refusal.empty()) return refusal;
    if (group) return "-BUSYGROUP Consumer Group name already exists\r\n";
    EXPECT_EQ(words, (Words{"XGROUP", "CREATE", "s", "g", words[4], "MKSTREAM"}));
    created_at = words[4];
    exists = true;
    group = words[4] == "$" ? last_id : StreamId::parse(words[4]);
    return "+OK\r\n";
  }
  std::string range(StreamId id) const {
    return entries.contains(id) ? "*1\r\n" + entry(id) : "*0\r\n";
  }
  std::string pending() const {
    if (!group) return "-NOGROUP No such key 's' or consumer group 'g'\r\n";
    if (!lowest_pending) return "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n";
    return fmt::format("*4\r\n:1\r\n{0}{0}*1\r\n*2\r\n$3\r\nbob\r\n$1\r\n1\r\n",
                       bulk(*lowest_pending));
  }
  std::string groups() const {
    if (!exists) return "-ERR no such key\r\n";
    std::string other = "*8\r\n" + bulk("name") + bulk("other") + bulk("consumers") + ":0\r\n" +
                        bulk("pending") + ":0\r\n" + bulk("last-delivered-id") + bulk("0-0");
    if (!group) return "*1\r\n" + other;
    return "*2\r\n" + other + "*8\r\n" + bulk("name") + bulk("g") + bulk("consumers") + ":1\r\n" +
           bulk("pending") + ":0\r\n" + bulk("last-delivered-id") + bulk(*group);
  }
  std::string info() const {
    if (!exists) return "-ERR no such key\r\n";
    return fmt::format("*14\r\n{}:{}\r\n{}:1\r\n", bulk("length"), entries.size(), bulk("groups")) +
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

  /// The group has read to `id`, and we were given that entry; then the group was looked at.
  void given_read_to(StreamId id) {
    group_.open(connection_);
    stream_.group = id;
    group_.seen(id);
    group_.observe(connection_);
  }
  void lose_the_group() {
    stream_.group.reset();
    stream_.created_at.reset();
  }

  FakeStream stream_;
  ScriptedConnection connection_{[this](const Words& words) { return stream_.answer(words); }};
  WorkerConfig config_{.key = "s", .group = "g"};
  Group group_{config_};
};

TEST_F(GroupTest, IsMadeWhereItWasTold) {
  group_.open(connection_);
  EXPECT_EQ(stream_.created_at, "0-0");
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
  stream_.lowest_pending = StreamId{2, 0};
  given_read_to({4, 0});
  lose_the_group();
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_LT(remade.position, (StreamId{2, 0}));
  EXPECT_GE(remade.position, (StreamId{1, 0})) << "1-0 was done";
}

TEST_F(GroupTest, IsMadeAgainWhereItWasSetBackTo) {
  stream_.lowest_pending = StreamId{3, 0};
  given_read_to({4, 0});
  stream_.group = StreamId{1, 0};
  group_.observe(connection_);
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
  stream_ = {.exists = false};
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

TEST_F(GroupTest, IsMadeAgainAtTheBeginningOfANewStreamThatHasTheIdThatWasSeenLast) {
  given_read_to({4, 0});
  stream_.become({{4, 0}, {9, 0}});  // two entries, where there had been five
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsMadeAgainAtTheBeginningOfANewStreamAlthoughNothingOfTheOldOneWasSeen) {
  config_.group_start = GroupStart::now();
  group_.open(connection_);
  stream_.become({{1, 0}, {2, 0}, {3, 0}, {3, 1}, {3, 2}, {3, 3}});
  EXPECT_TRUE(group_.remake(connection_).another_stream);
  EXPECT_EQ(stream_.created_at, "0-0");
}

TEST_F(GroupTest, IsNotConfusedByALookAtTheNewStream) {
  given_read_to({4, 0});
  stream_.become({{8, 0}, {9, 0}});
  group_.observe(connection_);  // the keeper comes between
  EXPECT_TRUE(group_.remake(connection_).another_stream);
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
  EXPECT_EQ(group_.remake(connection_).position, StreamId{}) << "everything once more, none less";
}

TEST_F(GroupTest, SaysWhereAPeerWasFirst) {
  given_read_to({3, 0});
  lose_the_group();
  stream_.group = StreamId{3, 0};
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_FALSE(remade.created);
  EXPECT_EQ(stream_.created_at, std::nullopt);
}

TEST_F(GroupTest, IsReadWhereAPeerMadeItAlthoughWeMayNot) {
  given_read_to({3, 0});
  lose_the_group();
  stream_.group = StreamId{3, 0};
  stream_.refusal = "-NOPERM no\r\n";
  const Group::Remade remade = group_.remake(connection_);
  EXPECT_FALSE(remade.created);
  EXPECT_FALSE(remade.another_stream);
  EXPECT_EQ(remade.position, (StreamId{3, 0}));
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
  EXPECT_THROW(group_.observe(lost), IoError);
  EXPECT_THROW(group_.remake(lost), IoError);
}

}  // namespace
}  // namespace millrace::detail
