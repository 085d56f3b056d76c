#include "script_fixture.hpp"

namespace millrace::test {
namespace {

template <typename Base>
class Opening : public Base {
 protected:
  scripts::Opened open(const std::optional<scripts::Remaking>& again = std::nullopt) {
    return scripts::open(this->eval(), this->config(), again);
  }
  /// Where the group reads on.
  std::string position() {
    return this->raw()("XINFO", "GROUPS", "s")[0].field("last-delivered-id").text;
  }
};

using OpenScript = Opening<ScriptTest>;
using OpenScriptOnItsOwnServer = Opening<ScriptTestOnItsOwnServer>;

TEST_F(OpenScript, MakesGroupStreamAndRecordWhereThereAreNone) {
  config().group_start = GroupStart::after({7, 0});
  const auto opened = open();
  EXPECT_TRUE(opened.made);
  EXPECT_TRUE(opened.name_was_free);
  EXPECT_EQ(opened.position, (StreamId{7, 0}));
  EXPECT_EQ(opened.entries_added, 0U);
  EXPECT_EQ(position(), "7-0");
  EXPECT_EQ(recorded("made"), opened.making);
  EXPECT_EQ(recorded("position"), "7-0");
  EXPECT_EQ(recorded("min_idle"), "3600000");
  EXPECT_EQ(recorded("token:alice"), "mine");
  EXPECT_GE(recorded("renewed"), ago(1min));
  EXPECT_GE(recorded("at:alice"), ago(1min));
}

TEST_F(OpenScript, FindsWhatAPeerHasMade) {
  const auto first = open();
  config().consumer = "bob";
  config().group_start = GroupStart::after({7, 0});
  const auto second = open();
  EXPECT_FALSE(second.made);
  EXPECT_EQ(second.making, first.making);
  EXPECT_EQ(position(), "0-0");
  EXPECT_EQ(recorded("position"), "0-0");
}

TEST_F(OpenScript, MakesNoGroupAgainThatAStrangerHasMade) {
  raw()("XGROUP", "CREATE", "s", "g", "9-0", "MKSTREAM");
  const auto opened = open();
  EXPECT_FALSE(opened.made);
  EXPECT_FALSE(opened.making.empty());
  EXPECT_EQ(recorded("made"), opened.making);
  EXPECT_EQ(position(), "9-0");
}

TEST_F(OpenScript, TakesNoNameBackWhereItMakesAGroupAgain) {
  const auto first = open();
  given_newer();
  raw()("XGROUP", "DESTROY", "s", "g");
  EXPECT_EQ(thrown<ServerError>([&] {
              open(scripts::Remaking{first.making, {2, 0}});
            }).prefix(),
            "SUPERSEDED");
  EXPECT_EQ(recorded("token:alice"), "newer");
  EXPECT_EQ(raw()("XINFO", "GROUPS", "s").elements.size(), 0U);
}

TEST_F(OpenScript, HasAnotherWordForEachMaking) {
  const auto first = open();
  raw()("XGROUP", "DESTROY", "s", "g");
  const auto second = open(scripts::Remaking{first.making, {2, 0}});
  EXPECT_TRUE(second.made);
  EXPECT_NE(second.making, first.making);
  EXPECT_EQ(recorded("made"), second.making);
  EXPECT_EQ(second.position, (StreamId{2, 0}));
  EXPECT_EQ(position(), "2-0");
  EXPECT_EQ(recorded("mark"), "2-0") << "the old mark is that of another group";
}

TEST_F(OpenScript, LetsStandWhatAPeerDidFirst) {
  const auto known = open();
  raw()("XGROUP", "DESTROY", "s", "g");
  const auto peers = open(scripts::Remaking{known.making, {5, 0}});
  append(s(), {{6, 0}, {7, 0}});
  s().consume("g", "bob", {.count = 1, .block = 0ms});

  const auto ours = open(scripts::Remaking{known.making, {2, 0}});
  EXPECT_FALSE(ours.made);
  EXPECT_EQ(ours.making, peers.making);
  EXPECT_EQ(ours.position, (StreamId{5, 0})) << "where the peer has made it";
  EXPECT_EQ(position(), "6-0") << "what was read since is not read again";
  EXPECT_EQ(recorded("mark"), "5-0");
}

TEST_F(OpenScript, MakesAGroupThatIsGoneTwiceWhereAPeerHadMadeIt) {
  const auto known = open();
  raw()("XGROUP", "DESTROY", "s", "g");
  const auto peers = open(scripts::Remaking{known.making, {5, 0}});
  raw()("XGROUP", "DESTROY", "s", "g");
  const auto ours = open(scripts::Remaking{known.making, {9, 0}});
  EXPECT_TRUE(ours.made);
  EXPECT_NE(ours.making, peers.making);
  EXPECT_EQ(position(), "5-0") << "9-0 is past what the peer's readers had";
}

TEST_F(OpenScript, SetsBackWhatAStrangerHasMade) {
  const auto known = open();
  append(s(), {{1, 0}, {3, 0}});
  raw()("XGROUP", "DESTROY", "s", "g");
  raw()("XGROUP", "CREATE", "s", "g", "$");
  const auto opened = open(scripts::Remaking{known.making, {2, 0}});
  EXPECT_TRUE(opened.made);
  EXPECT_NE(opened.making, known.making) << "a peer must not set it back once more";
  EXPECT_EQ(recorded("made"), opened.making);
  EXPECT_EQ(position(), "2-0");

  s().consume("g", "bob", {.count = 1, .block = 0ms});
  EXPECT_FALSE(open(scripts::Remaking{known.making, {2, 0}}).made);
  EXPECT_EQ(position(), "3-0");
}

TEST_F(OpenScript, SetsBackWhereTheRecordIsGoneToo) {
  const auto known = open();
  raw()("DEL", kRecord);
  raw()("XGROUP", "DESTROY", "s", "g");
  raw()("XGROUP", "CREATE", "s", "g", "9-0");
  EXPECT_TRUE(open(scripts::Remaking{known.making, {2, 0}}).made);
  EXPECT_EQ(position(), "2-0");
}

TEST_F(OpenScript, MakesNoGroupOfWhatIsNoStream) {
  raw()("SET", "s", "a string");
  EXPECT_THROW(open(), WrongTypeError);
  EXPECT_EQ(raw()("EXISTS", kRecord), ":0");
}

TEST_F(OpenScriptOnItsOwnServer, NeedsThePermissionToMakeGroupsWhereThereIsNone) {
  raw()("ACL", "SETUSER", "default", "-xgroup");
  EXPECT_THROW(open(), PermissionError);
  EXPECT_EQ(raw()("EXISTS", "s", kRecord), ":0");
  raw()("ACL", "SETUSER", "default", "+@all");
  raw()("XGROUP", "CREATE", "s", "g", "9-0", "MKSTREAM");
  raw()("ACL", "SETUSER", "default", "-xgroup");
  EXPECT_FALSE(open().made);
  EXPECT_EQ(position(), "9-0");
}

TEST_F(OpenScriptOnItsOwnServer, MakesTheGroupAlthoughTheServerIsOutOfMemory) {
  given_no_memory();
  EXPECT_TRUE(open().made);
  EXPECT_EQ(position(), "0-0");
}

TEST_F(OpenScript, RefusesAnotherMinIdleWhileSomebodyRenewsTheirs) {
  open();
  raw()("HSET", kRecord, "renewed", ago(30min));
  config().consumer = "bob";
  config().min_idle = 1s;  // for so long nobody has renewed, but it is theirs that counts
  const std::string before = everything();
  EXPECT_EQ(thrown<ServerError>([&] { open(); }).prefix(), "MINIDLE");
  EXPECT_EQ(everything(), before);
  config().min_idle = 1h;
  EXPECT_NO_THROW(open());
}

TEST_F(OpenScript, TakesAnotherMinIdleOnceNobodyHasRenewedTheirsForThatLong) {
  open();
  raw()("HSET", kRecord, "renewed", ago(61min));
  config().consumer = "bob";
  config().min_idle = 2h;
  EXPECT_NO_THROW(open());
  EXPECT_EQ(recorded("min_idle"), "7200000");
  EXPECT_GE(recorded("renewed"), ago(1min));
}

TEST_F(OpenScript, FindsANameFreeThatNobodyElseHas) {
  EXPECT_TRUE(open().name_was_free);
  EXPECT_TRUE(open().name_was_free) << "it is our own";
  config().consumer = "bob";
  config().token = "another";
  EXPECT_TRUE(open().name_was_free) << "that of alice is another name";
}

TEST_F(OpenScript, TakesANameFromOneThatMayStillWork) {
  raw()("HSET", kRecord, "token:alice", "older", "at:alice", ago(29min));
  EXPECT_FALSE(open().name_was_free) << "renewed within one and a half times 20 minutes";
  EXPECT_EQ(recorded("token:alice"), "mine");
  EXPECT_GE(recorded("at:alice"), ago(1min));
}

TEST_F(OpenScript, FindsANameFreeThatWasNotRenewedForOneAndAHalfRenewals) {
  raw()("HSET", kRecord, "token:alice", "older", "at:alice", ago(31min));
  EXPECT_TRUE(open().name_was_free);
  EXPECT_EQ(recorded("token:alice"), "mine");
}

TEST_F(OpenScript, KeepsNoTokenForANameThatNobodyElseCanHave) {
  config().token.clear();
  EXPECT_TRUE(open().name_was_free);
  EXPECT_EQ(raw()("HEXISTS", kRecord, "token:alice"), ":0");
  EXPECT_GE(recorded("at:alice"), ago(1min)) << "that it lives is to be known";
}

}  // namespace
}  // namespace millrace::test
