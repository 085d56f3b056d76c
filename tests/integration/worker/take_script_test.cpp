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

  scripts::Taken take(Ids held = {}, std::size_t count = 64, StreamId cursor = {}) {
    return scripts::take(eval(), config(), cursor, count, held);
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
  const auto first = take({}, 1, {2, 0});
  EXPECT_EQ(first.entries.ids(), (Ids{{2, 0}})) << "1-0 is before the cursor";
  EXPECT_EQ(first.next_cursor, (StreamId{3, 0}));
  const auto second = take({}, 64, first.next_cursor);
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
  EXPECT_EQ(taken.unwritten, Ids{});
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 3 idle 0m", "3-0 alice 3 idle 0m"));
  ASSERT_THAT(letter_ids(), ElementsAre("2-0"));
  const RawReply letter = letters()[0];
  EXPECT_EQ(letter.elements.size(), 16U);
  EXPECT_EQ(letter.field("dlq_stream").text, "s");
  EXPECT_EQ(letter.field("dlq_group").text, "g");
  EXPECT_GE(letter.field("dlq_failed_ms").text, ago(1min));
  EXPECT_THAT(letter.field("dlq_reason").text, ::testing::StartsWith("trimmed: "));
}

TEST_F(TakeScript, WritesNoLetterOfWhatIsHeld) {
  given_idle(3, {{1, 0}, {2, 0}});
  const auto taken = take({{1, 0}, {3, 0}});
  EXPECT_EQ(taken.deleted_ids, (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(taken.unwritten, Ids{});
  EXPECT_THAT(letter_ids(), ElementsAre("2-0"));
}

TEST_F(TakeScript, WritesNoLettersWhereThereAreNone) {
  given_idle(2, {{1, 0}});
  config().letters.enabled = false;
  const auto taken = take();
  EXPECT_EQ(taken.deleted_ids, (Ids{{1, 0}}));
  EXPECT_EQ(taken.unwritten, Ids{});
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(TakeScript, GivesBackTheIdsWhoseLettersCannotBeWritten) {
  given_idle(3, {{1, 0}, {2, 0}});
  raw()("SET", kLetters, "a string");
  const auto taken = take();
  EXPECT_EQ(taken.entries.ids(), (Ids{{3, 0}})) << "others are taken over";
  EXPECT_EQ(taken.deleted_ids, (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(taken.unwritten, (Ids{{1, 0}, {2, 0}}));
}

TEST_F(TakeScript, GivesBackTheIdsForWhoseLettersThereIsNoRoom) {
  given_idle(3, {{1, 0}, {2, 0}});
  config().letters.max_length = 1;
  const auto taken = take();
  EXPECT_EQ(taken.unwritten, (Ids{{2, 0}}));
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(TakeScript, GivesBackWhatIsWrittenLater) {
  given_idle(1, {{1, 0}});
  raw()("SET", kLetters, "a string");
  ASSERT_EQ(take().unwritten, (Ids{{1, 0}}));
  raw()("DEL", kLetters);

  detail::Settlement waiting{.kind = detail::Settlement::Kind::kBury};
  waiting.work.ticket.id = {1, 0};
  waiting.work.entry = Entry{{1, 0}, {}, true};
  waiting.trimmed = true;
  const scripts::Burial burial{waiting, scripts::Burial::Payload::kInStream};
  EXPECT_EQ(scripts::bury(eval(), config(), burial), scripts::Buried::kBuried);
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(TakeScriptOnItsOwnServer, WritesLettersAlthoughTheServerIsOutOfMemory) {
  given_idle(3, {{2, 0}});
  given_no_memory();
  const auto taken = take();
  EXPECT_EQ(taken.entries.ids(), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(taken.unwritten, Ids{});
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

TEST_F(RetakeScript, AcknowledgesATrimmedEntryWithALetter) {
  given_pending(2);
  raw()("XDEL", "s", "1-0");
  const auto taken = retake({{{1, 0}, 1}, {{2, 0}, 1}});
  EXPECT_EQ(taken.entries.ids(), (Ids{{2, 0}}));
  EXPECT_EQ(taken.deleted_ids, (Ids{{1, 0}}));
  EXPECT_THAT(pending(), ElementsAre("2-0 alice 1 idle 0m"));
  ASSERT_THAT(letter_ids(), ElementsAre("1-0"));
  EXPECT_EQ(letters()[0].field("dlq_consumer").text, "alice");
  EXPECT_EQ(letters()[0].field("dlq_attempts").text, "1");
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

TEST_F(RetakeScript, AcknowledgesNothingWhoseLetterCannotBeWritten) {
  given_pending(2);
  raw()("XDEL", "s", "1-0");
  raw()("SET", kLetters, "a string");
  const auto taken = retake({{{1, 0}, 1}, {{2, 0}, 1}});
  EXPECT_EQ(taken.entries.ids(), (Ids{{2, 0}})) << "others are taken in hand";
  EXPECT_EQ(taken.deleted_ids, Ids{});
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m", "2-0 alice 1 idle 0m"));
  raw()("DEL", kLetters);
  EXPECT_EQ(retake({{{1, 0}, 1}}).deleted_ids, (Ids{{1, 0}}));
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(RetakeScriptOnItsOwnServer, WritesLettersAlthoughTheServerIsOutOfMemory) {
  given_pending(1);
  raw()("XDEL", "s", "1-0");
  given_no_memory();
  EXPECT_EQ(retake({{{1, 0}, 1}}).deleted_ids, (Ids{{1, 0}}));
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

}  // namespace
}  // namespace millrace::test
