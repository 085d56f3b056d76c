#include "script_fixture.hpp"

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// What take() and retake() share, on whichever server.
template <typename Base>
class Taking : public Base {
 protected:
  using Base::config;
  using Base::eval;

  scripts::Taken take(std::size_t count = 64, StreamId cursor = {}) {
    return scripts::take(eval(), config(), cursor, count);
  }
  static Ids trimmed_ids(const scripts::Taken& taken) {
    Ids ids;
    for (const scripts::Trimmed& one : taken.trimmed) ids.push_back(one.id);
    return ids;
  }
  /// `1-0` to `<count>-0` are bob's and idle for long; those of `trimmed` are not in the stream.
  void given_idle(std::size_t count, const Ids& trimmed = {}) {
    this->given_pending(count, "bob");
    for (std::uint64_t i = 1; i <= count; ++i) this->given({i, 0}, "bob", 3, 2h);
    for (const StreamId id : trimmed) this->raw()("XDEL", "s", id);
  }
};

using TakeScript = Taking<ScriptTest>;
using TakeScriptOnItsOwnServer = Taking<ScriptTestOnItsOwnServer>;

TEST_F(TakeScript, TakesOverWhatIsIdleForLongAndKeepsCounts) {
  given_idle(3);
  given({2, 0}, "bob", 5, 59min);
  const auto taken = take();
  EXPECT_EQ(text(taken.entries), "1-0[f=v] 3-0[f=v]");
  EXPECT_THAT(taken.deliveries, ElementsAre(3, 3));
  EXPECT_EQ(taken.next_cursor, StreamId{});
  EXPECT_THAT(pending(),
              ElementsAre("1-0 alice 3 idle 0m", "2-0 bob 5 idle 59m", "3-0 alice 3 idle 0m"));
}

TEST_F(TakeScript, TakesWhatIsPendingUnderItsOwnNameOnceItIsIdle) {
  given_pending(2);
  given({1, 0}, "alice", 2, 2h);
  EXPECT_EQ(text(take().entries), "1-0[f=v]");
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 2 idle 0m", "2-0 alice 1 idle 0m"));
}

TEST_F(TakeScript, GoesPageByPage) {
  given_idle(3);
  const auto first = take(1, {2, 0});
  EXPECT_EQ(first.entries.ids(), (Ids{{2, 0}})) << "1-0 is before the cursor";
  EXPECT_EQ(first.next_cursor, (StreamId{3, 0}));
  const auto second = take(64, first.next_cursor);
  EXPECT_EQ(second.entries.ids(), (Ids{{3, 0}}));
  EXPECT_EQ(second.next_cursor, StreamId{});
}

TEST_F(TakeScript, SaysCountsThatLuaCannotSay) {
  given_idle(1);
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "RETRYCOUNT", "9223372036854775807",
        "JUSTID");
  EXPECT_THAT(take().deliveries, ElementsAre(1'000'000'000));
}

TEST_F(TakeScript, NeedsTheToken) {
  given_idle(3, {{2, 0}});
  expect_needs_the_token([&] { take(); });
}

TEST_F(TakeScript, WritesTheLetterOfATrimmedEntryInTheSameStep) {
  given_idle(3, {{2, 0}});
  const auto taken = take();
  EXPECT_EQ(taken.entries.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(taken.deleted_ids, (Ids{{2, 0}}));
  EXPECT_TRUE(taken.trimmed.empty());
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 3 idle 0m", "3-0 alice 3 idle 0m"));
  ASSERT_THAT(letter_ids(), ElementsAre("2-0"));
  const RawReply letter = letters()[0];
  EXPECT_EQ(letter.elements.size(), 16U);
  EXPECT_EQ(letter.field("dlq_stream").text, "s");
  EXPECT_EQ(letter.field("dlq_group").text, "g");
  EXPECT_GE(letter.field("dlq_failed_ms").text, ago(1min));
  EXPECT_THAT(letter.field("dlq_reason").text, ::testing::StartsWith("trimmed: "));
}

TEST_F(TakeScript, LeavesToItsWorkerWhatIsPendingForItAndTrimmed) {
  given_pending(2);
  given({1, 0}, "alice", 3, 2h);
  raw()("XDEL", "s", "1-0", "2-0");
  const auto before = pending();
  const auto taken = take();
  ASSERT_EQ(taken.trimmed.size(), 1U) << "2-0 is young";
  EXPECT_EQ(taken.trimmed[0].id, (StreamId{1, 0}));
  EXPECT_EQ(taken.trimmed[0].owner, "alice");
  EXPECT_EQ(taken.trimmed[0].deliveries, 3U);
  EXPECT_EQ(taken.deleted_ids, Ids{});
  EXPECT_EQ(pending(), before);
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(TakeScript, LeavesATrimmedEntryToAPeerThatLives) {
  given_idle(2, {{1, 0}});
  raw()("HSET", kRecord, "at:bob", ago(59min));
  const auto taken = take();
  EXPECT_EQ(taken.entries.ids(), (Ids{{2, 0}}));
  EXPECT_TRUE(taken.trimmed.empty() && taken.deleted_ids.empty());
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 3 idle 120m", "2-0 alice 3 idle 0m"));
  EXPECT_THAT(letters(), IsEmpty());

  raw()("HSET", kRecord, "at:bob", ago(61min));
  EXPECT_EQ(take().deleted_ids, (Ids{{1, 0}}));
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(TakeScript, LeavesATrimmedEntryThatIsYoung) {
  given_pending(2, "bob");
  given({1, 0}, "bob", 3, 2h);
  raw()("XDEL", "s", "1-0", "2-0");
  take();
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
  EXPECT_THAT(pending(), ElementsAre("2-0 bob 1 idle 0m"));
}

TEST_F(TakeScript, WritesNoLettersWhereThereAreNone) {
  given_idle(2, {{1, 0}});
  config().letters.enabled = false;
  const auto taken = take();
  EXPECT_EQ(taken.deleted_ids, (Ids{{1, 0}}));
  EXPECT_TRUE(taken.trimmed.empty());
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(TakeScript, GivesBackTheIdsWhoseLettersCannotBeWritten) {
  given_idle(3, {{1, 0}, {2, 0}});
  raw()("SET", kLetters, "a string");
  const auto taken = take();
  EXPECT_EQ(taken.entries.ids(), (Ids{{3, 0}})) << "others are taken over";
  EXPECT_EQ(taken.deleted_ids, Ids{});
  EXPECT_EQ(trimmed_ids(taken), (Ids{{1, 0}, {2, 0}}));
  EXPECT_THAT(pending(),
              ElementsAre("1-0 bob 3 idle 120m", "2-0 bob 3 idle 120m", "3-0 alice 3 idle 0m"));
}

TEST_F(TakeScript, GivesBackTheIdsForWhoseLettersThereIsNoRoom) {
  given_idle(3, {{1, 0}, {2, 0}});
  config().letters.max_length = 1;
  const auto taken = take();
  EXPECT_EQ(trimmed_ids(taken), (Ids{{2, 0}}));
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(TakeScript, GivesBackWhatIsWrittenLater) {
  given_idle(1, {{1, 0}});
  raw()("SET", kLetters, "a string");
  ASSERT_EQ(trimmed_ids(take()), (Ids{{1, 0}}));
  raw()("DEL", kLetters);

  detail::Settlement waiting{.kind = detail::Settlement::Kind::kBury};
  waiting.work.ticket.id = {1, 0};
  waiting.work.entry = Entry{{1, 0}, {}, true};
  waiting.trimmed = true;
  const scripts::Burial burial{waiting, scripts::Burial::Payload::kInStream};
  EXPECT_EQ(scripts::bury(eval(), config(), burial), scripts::Buried::kNotOurs);
  waiting.owner = "bob";
  EXPECT_EQ(scripts::bury(eval(), config(), burial), scripts::Buried::kBuried);
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
  EXPECT_THAT(pending(), IsEmpty());
}

TEST_F(TakeScriptOnItsOwnServer, WritesLettersAlthoughTheServerIsOutOfMemory) {
  given_idle(3, {{2, 0}});
  given_no_memory();
  const auto taken = take();
  EXPECT_EQ(taken.entries.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_TRUE(taken.trimmed.empty());
  EXPECT_THAT(letter_ids(), ElementsAre("2-0"));
}

template <typename Base>
class Retaking : public Base {
 protected:
  scripts::Taken retake(const std::vector<detail::Pending>& pending) {
    return scripts::retake(this->eval(), this->config(), pending);
  }
};

using RetakeScript = Retaking<ScriptTest>;
using RetakeScriptOnItsOwnServer = Retaking<ScriptTestOnItsOwnServer>;

TEST_F(RetakeScript, TakesInHandWhatIsOursAndKeepsCounts) {
  given_pending(2);
  given({1, 0}, "alice", 3, 2h);
  given({2, 0}, "alice", 0, 2h);
  const auto taken = retake({{{1, 0}, 3}, {{2, 0}, 0}});
  EXPECT_EQ(text(taken.entries), "1-0[f=v] 2-0[f=v]");
  EXPECT_THAT(taken.deliveries, ElementsAre(3, 0));
  EXPECT_EQ(taken.next_cursor, StreamId{});
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 3 idle 0m", "2-0 alice 0 idle 0m"));
}

TEST_F(RetakeScript, LeavesOutWhatIsAPeers) {
  given_pending(2);
  given({1, 0}, "bob", 1, 2h);
  EXPECT_EQ(retake({{{1, 0}, 1}, {{2, 0}, 1}}).entries.ids(), (Ids{{2, 0}}));
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 120m", "2-0 alice 1 idle 0m"));
}

TEST_F(RetakeScript, LeavesOutWhatHasAnotherCount) {
  given_pending(2);
  given({1, 0}, "alice", 2, 2h);
  given({2, 0}, "alice", 2, 2h);
  EXPECT_EQ(retake({{{1, 0}, 1}, {{2, 0}, 3}}).entries.ids(), Ids{});
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 2 idle 120m", "2-0 alice 2 idle 120m"));
}

TEST_F(RetakeScript, LeavesOutWhatWasAcknowledged) {
  given_pending(2);
  s().ack("g", {{1, 0}});
  EXPECT_EQ(retake({{{1, 0}, 1}, {{2, 0}, 1}}).entries.ids(), (Ids{{2, 0}}));
  EXPECT_THAT(pending(), ElementsAre("2-0 alice 1 idle 0m"));
}

TEST_F(RetakeScript, NeedsTheToken) {
  given_pending(2);
  for (const StreamId id : {StreamId{1, 0}, StreamId{2, 0}}) given(id, "alice", 1, 2h);
  expect_needs_the_token([&] { retake({{{1, 0}, 1}, {{2, 0}, 1}}); });
}

TEST_F(RetakeScript, LeavesATrimmedEntryPendingUntilItsLetterIsWritten) {
  given_pending(2);
  raw()("XDEL", "s", "1-0");
  const auto taken = retake({{{1, 0}, 1}, {{2, 0}, 1}});
  EXPECT_EQ(taken.entries.ids(), (Ids{{2, 0}}));
  EXPECT_EQ(taken.deleted_ids, Ids{});
  ASSERT_EQ(taken.trimmed.size(), 1U);
  EXPECT_EQ(taken.trimmed[0].id, (StreamId{1, 0}));
  EXPECT_EQ(taken.trimmed[0].owner, "alice");
  EXPECT_EQ(taken.trimmed[0].deliveries, 1U);
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m", "2-0 alice 1 idle 0m"));
  EXPECT_THAT(letters(), IsEmpty());

  detail::Settlement waiting{.kind = detail::Settlement::Kind::kBury};
  waiting.work.ticket.id = {1, 0};
  waiting.work.entry = Entry{{1, 0}, {}, true};
  const scripts::Burial burial{waiting, scripts::Burial::Payload::kInStream};
  EXPECT_EQ(scripts::bury(eval(), config(), burial), scripts::Buried::kBuried);
  EXPECT_THAT(pending(), ElementsAre("2-0 alice 1 idle 0m"));
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(RetakeScript, LeavesATrimmedEntryToAPeer) {
  given_pending(1);
  given({1, 0}, "bob", 1, 2h);
  raw()("XDEL", "s", "1-0");
  EXPECT_EQ(retake({{{1, 0}, 1}}).deleted_ids, Ids{});
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 120m"));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(RetakeScript, WritesNoLetterWhereThereAreNone) {
  given_pending(1);
  raw()("XDEL", "s", "1-0");
  config().letters.enabled = false;
  EXPECT_EQ(retake({{{1, 0}, 1}}).deleted_ids, (Ids{{1, 0}}));
  EXPECT_THAT(pending(), IsEmpty());
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(RetakeScriptOnItsOwnServer, NeedsNoMemory) {
  given_pending(2);
  raw()("XDEL", "s", "1-0");
  given_no_memory();
  const auto taken = retake({{{1, 0}, 1}, {{2, 0}, 1}});
  EXPECT_EQ(taken.entries.ids(), (Ids{{2, 0}}));
  EXPECT_EQ(taken.trimmed.size(), 1U);
}

/// take() where a sink has to have a letter before anything leaves the pending list.
class TakeScriptForASink : public TakeScript {
 protected:
  TakeScriptForASink() {
    config().letters.sink = [](const DeadLetter&) {};
  }

  /// What is done once the sink has it.
  scripts::Buried acknowledge(const scripts::Trimmed& trimmed) {
    detail::Settlement waiting{.kind = detail::Settlement::Kind::kBury};
    waiting.work.ticket.id = trimmed.id;
    waiting.work.entry = Entry{trimmed.id, {}, true};
    waiting.owner = trimmed.owner;
    return scripts::bury(eval(), config(), {waiting, scripts::Burial::Payload::kWritten});
  }
};

TEST_F(TakeScriptForASink, LeavesATrimmedEntryPendingUntilTheSinkHasIt) {
  given_idle(4, {{2, 0}});
  given({4, 0}, "bob", 1, 59min);
  const auto taken = take();
  EXPECT_EQ(text(taken.entries), "1-0[f=v] 3-0[f=v]");
  EXPECT_THAT(taken.deliveries, ElementsAre(3, 3));
  EXPECT_EQ(taken.deleted_ids, Ids{});
  EXPECT_EQ(taken.next_cursor, StreamId{});
  ASSERT_EQ(taken.trimmed.size(), 1U);
  EXPECT_EQ(taken.trimmed[0].id, (StreamId{2, 0}));
  EXPECT_EQ(taken.trimmed[0].owner, "bob");
  EXPECT_EQ(taken.trimmed[0].deliveries, 3U);
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 3 idle 0m", "2-0 bob 3 idle 120m",
                                     "3-0 alice 3 idle 0m", "4-0 bob 1 idle 59m"));
  EXPECT_EQ(acknowledge(taken.trimmed[0]), scripts::Buried::kBuried);
  EXPECT_THAT(pending(),
              ElementsAre("1-0 alice 3 idle 0m", "3-0 alice 3 idle 0m", "4-0 bob 1 idle 59m"));
}

TEST_F(TakeScriptForASink, AcknowledgesNothingThatHasAnotherOwnerMeanwhile) {
  given_idle(1, {{1, 0}});
  EXPECT_EQ(acknowledge({.id = {1, 0}, .owner = "carol", .deliveries = 3}),
            scripts::Buried::kNotOurs);
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 3 idle 120m"));
}

TEST_F(TakeScriptForASink, GoesPageByPage) {
  given_idle(5, {{2, 0}});
  const auto first = take(2);
  EXPECT_EQ(first.entries.ids(), (Ids{{1, 0}}));
  EXPECT_EQ(first.trimmed.size(), 1U);
  EXPECT_EQ(first.next_cursor, (StreamId{3, 0}));
  const auto second = take(2, first.next_cursor);
  EXPECT_EQ(second.entries.ids(), (Ids{{3, 0}, {4, 0}}));
  EXPECT_EQ(second.next_cursor, (StreamId{5, 0}));
  const auto third = take(2, second.next_cursor);
  EXPECT_EQ(third.entries.ids(), (Ids{{5, 0}}));
  EXPECT_EQ(third.next_cursor, StreamId{});
}

TEST_F(TakeScriptForASink, LooksAtNoMoreThanXautoclaimDoes) {
  given_pending(25, "bob");
  given({25, 0}, "bob", 1, 2h);
  const auto first = take(2);
  EXPECT_EQ(first.entries.ids(), Ids{});
  EXPECT_EQ(first.next_cursor, (StreamId{21, 0})) << "ten times as many as it may take";
  EXPECT_EQ(take(2, first.next_cursor).entries.ids(), (Ids{{25, 0}}));
}

TEST_F(TakeScriptForASink, NeedsTheToken) {
  given_idle(1);
  expect_needs_the_token([&] { take(); });
}

/// Under a user that may use no dead letters.
class ScriptsWithoutLetters : public TakeScriptOnItsOwnServer {};

TEST_F(ScriptsWithoutLetters, DoAllButWriteThem) {
  given_pending(3);
  given({1, 0}, "alice", 1, 2h);
  raw()("ACL", "SETUSER", "default", "resetkeys", "~s", "~{s}:millrace:*");
  EXPECT_NO_THROW(scripts::open(eval(), config(), std::nullopt));
  const scripts::Hold hold{.id = {2, 0}, .expected = 1, .next = 1};
  EXPECT_THAT(scripts::renew(eval(), config(), {&hold, 1}).found,
              ElementsAre(scripts::Holding::kOurs));
  const detail::Pending ours{.id = {2, 0}, .deliveries = 1};
  EXPECT_EQ(scripts::retake(eval(), config(), {&ours, 1}).entries.ids(), (Ids{{2, 0}}));
  EXPECT_THROW(take(), PermissionError);
  EXPECT_NO_THROW(scripts::leave(eval(), config()));
}

}  // namespace
}  // namespace millrace::test
