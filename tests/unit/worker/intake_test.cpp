#include "worker/intake.hpp"

#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class IntakeTest : public ::testing::Test {
 protected:
  static EntryBatch batch(const Ids& ids) {
    std::vector<OwnedEntry> entries;
    for (const StreamId id : ids) entries.push_back({.id = id, .fields = {{"f", "v"}}});
    return EntryBatch::of(entries);
  }
  static scripts::Taken taken(const Ids& ids, std::vector<std::uint64_t> deliveries,
                              Ids deleted = {}) {
    return {.entries = batch(ids),
            .deliveries = std::move(deliveries),
            .deleted_ids = std::move(deleted)};
  }
  void hold(StreamId id) {
    Work work = work_of(id, {});
    ASSERT_TRUE(parts_.ledger.hold(work));
  }
  std::vector<Work> started() {
    std::vector<Work> works;
    while (auto work = parts_.ledger.next(parts_.clock.now())) works.push_back(*work);
    return works;
  }
  Ids started_ids() {
    Ids ids;
    for (const Work& work : started()) ids.push_back(work.entry.id());
    return ids;
  }
  Ids settlements() {
    Ids ids;
    for (const Settlement& one : parts_.ledger.take_settlements(100)) {
      EXPECT_EQ(one.kind, Settlement::Kind::kBury);
      EXPECT_TRUE(one.trimmed);
      EXPECT_TRUE(one.work.entry.deleted());
      EXPECT_EQ(one.reason, "trimmed: deleted from the stream while it was pending");
      ids.push_back(one.work.ticket.id);
    }
    return ids;
  }

  Parts parts_;
};

TEST_F(IntakeTest, QueuesNewEntries) {
  const TimePoint sent_at = parts_.clock.now();
  EXPECT_EQ(hold_new(parts_.shared, batch({{1, 0}, {2, 0}}), sent_at), 2U);
  const auto works = started();
  ASSERT_EQ(works.size(), 2U);
  EXPECT_EQ(works[0].ticket.id, (StreamId{1, 0}));
  EXPECT_EQ(works[1].entry.at("f"), "v") << "the payload is kept alive";
  EXPECT_FALSE(works[0].reclaimed);
  EXPECT_EQ(works[0].deliveries, 1U);
  EXPECT_EQ(works[0].leased_at, sent_at);
  EXPECT_EQ(works[0].lane, std::nullopt);
  EXPECT_EQ(parts_.counters.delivered, 2U);
  EXPECT_EQ(parts_.counters.reclaimed, 0U);
}

TEST_F(IntakeTest, HasEntriesWaitFromWhenTheyAreHere) {
  const TimePoint sent_at = parts_.clock.now();
  parts_.clock.advance(2s);
  hold_new(parts_.shared, batch({{1, 0}}), sent_at);
  EXPECT_EQ(parts_.ledger.unfinished().startable, parts_.clock.now());
  parts_.ledger.start_over();
  parts_.clock.advance(2s);
  hold_taken(parts_.shared, taken({{1, 0}}, {1}), sent_at);
  EXPECT_EQ(parts_.ledger.unfinished().startable, parts_.clock.now());
}

TEST_F(IntakeTest, SkipsNewEntriesThatAreHeld) {
  hold({2, 0});
  EXPECT_EQ(hold_new(parts_.shared, batch({{1, 0}, {2, 0}, {3, 0}}), {}), 2U);
  EXPECT_EQ(started_ids(), (Ids{{2, 0}, {1, 0}, {3, 0}}));
  EXPECT_EQ(parts_.counters.delivered, 2U);
}

TEST_F(IntakeTest, GivesEntriesOfOneKeyOneLane) {
  parts_.config.lane = [](const Entry& entry) { return std::to_string(entry.id().ms % 2); };
  hold_new(parts_.shared, batch({{1, 0}, {2, 0}, {3, 0}}), {});
  const auto works = started();
  ASSERT_EQ(works.size(), 2U) << "3-0 waits for 1-0";
  EXPECT_TRUE(works[0].lane.has_value());
  EXPECT_NE(works[0].lane, works[1].lane);
  hold_taken(parts_.shared, taken({{5, 0}}, {1}), {});
  EXPECT_TRUE(started().empty()) << "what is taken over waits as well";
}

TEST_F(IntakeTest, TakesAKeyThatThrowsForNone) {
  parts_.config.lane = [](const Entry&) -> std::string { throw 42; };
  hold_new(parts_.shared, batch({{1, 0}, {2, 0}}), {});
  EXPECT_EQ(started().size(), 2U);
}

TEST_F(IntakeTest, HoldsWhatWasTakenOverAndTellsOfIt) {
  const auto held =
      hold_taken(parts_.shared, taken({{1, 0}, {2, 0}}, {4, 0}, {{3, 0}}), parts_.clock.now());
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held[1].id, (StreamId{2, 0}));
  const auto works = started();
  ASSERT_EQ(works.size(), 2U);
  EXPECT_TRUE(works[0].reclaimed);
  EXPECT_EQ(works[0].deliveries, 4U);
  EXPECT_EQ(works[1].deliveries, 0U);
  EXPECT_EQ(works[0].leased_at, parts_.clock.now());
  EXPECT_EQ(parts_.counters.delivered, 2U);
  EXPECT_EQ(parts_.counters.reclaimed, 2U);
  EXPECT_EQ(parts_.counters.trimmed, 1U);
  EXPECT_EQ(parts_.observer->reclaimed(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(parts_.observer->deleted(), (Ids{{3, 0}}));
}

TEST_F(IntakeTest, SkipsWhatIsHeldAndKeepsEachCountWithItsEntry) {
  hold({1, 0});
  hold_taken(parts_.shared, taken({{1, 0}, {2, 0}}, {7, 8}), {});
  const auto works = started();
  ASSERT_EQ(works.size(), 2U);
  EXPECT_EQ(works[0].deliveries, 1U);
  EXPECT_EQ(works[1].deliveries, 8U);
  EXPECT_EQ(parts_.observer->reclaimed(), (Ids{{2, 0}}));
}

TEST_F(IntakeTest, LeavesTheStartToTheCallerWhereItIsHis) {
  const auto held = hold_taken(parts_.shared, taken({{1, 0}}, {1}), {}, Starter::kCaller);
  EXPECT_TRUE(started().empty());
  EXPECT_TRUE(parts_.ledger.start(held.at(0), {}).has_value());
}

TEST_F(IntakeTest, TellsNobodyOfAnEmptyPage) {
  hold({1, 0});
  class Silent : public Observer {
    void on_reclaimed(std::span<const StreamId>, std::span<const StreamId>) override {
      ADD_FAILURE() << "there was nothing to tell";
    }
  };
  const Events events{std::make_shared<Silent>()};
  const Shared shared = parts_.with(events);
  hold_taken(shared, taken({{1, 0}}, {1}), {});
  hold_taken(shared, taken({}, {}), {});
}

TEST_F(IntakeTest, LeavesAnEntryThatIsHeldToItsHandlerAlthoughItWasTrimmed) {
  const Work work = running(parts_.ledger, work_of({1, 0}, {}));
  hold_taken(parts_.shared,
             scripts::Taken{.trimmed = {{.id = {1, 0}, .owner = "alice", .deliveries = 1}}}, {});
  EXPECT_TRUE(settlements().empty());
  EXPECT_EQ(parts_.counters.trimmed, 0U) << "it is handled from memory";
  EXPECT_EQ(parts_.observer->deleted(), Ids{});
  EXPECT_TRUE(parts_.ledger.finish(work.ticket, parts_.clock.now()).has_value());
}

TEST_F(IntakeTest, CountsTheLettersThatTheServerWrote) {
  hold_taken(parts_.shared, taken({}, {}, {{1, 0}, {3, 0}}), {});
  EXPECT_EQ(parts_.counters.dead_lettered, 2U);
  EXPECT_TRUE(settlements().empty());
}

TEST_F(IntakeTest, SeesOnceToATrimmedEntryThatIsPendingForAPeer) {
  scripts::Taken page;
  page.trimmed = {{.id = {1, 0}, .owner = "bob", .deliveries = 3}};
  for (int i = 0; i < 2; ++i)
    hold_taken(parts_.shared, scripts::Taken{.trimmed = page.trimmed}, {});
  EXPECT_EQ(parts_.counters.dead_lettered, 0U) << "not yet";
  EXPECT_EQ(parts_.counters.trimmed, 1U);
  EXPECT_EQ(parts_.observer->deleted(), (Ids{{1, 0}}));
  auto waiting = parts_.ledger.take_settlements(100);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].kind, Settlement::Kind::kBury);
  EXPECT_EQ(waiting[0].owner, "bob");
  EXPECT_EQ(waiting[0].attempts, 3U);
  EXPECT_TRUE(waiting[0].trimmed);
  EXPECT_FALSE(parts_.ledger.holds({1, 0})) << "it is not ours";

  hold_taken(parts_.shared, scripts::Taken{.trimmed = page.trimmed}, {});
  EXPECT_EQ(parts_.ledger.settlements(), 0U) << "it is in somebody's hands";
  parts_.ledger.settled(waiting[0], true);
  hold_taken(parts_.shared, scripts::Taken{.trimmed = page.trimmed}, {});
  EXPECT_EQ(parts_.ledger.settlements(), 1U);
}

TEST_F(IntakeTest, HoldsATrimmedEntryThatIsPendingForUsUntilItsLetterIsWritten) {
  const std::vector<scripts::Trimmed> trimmed{{.id = {1, 0}, .owner = "alice", .deliveries = 3}};
  for (int i = 0; i < 2; ++i) hold_taken(parts_.shared, scripts::Taken{.trimmed = trimmed}, {});
  EXPECT_EQ(parts_.counters.trimmed, 1U);
  EXPECT_TRUE(parts_.ledger.holds({1, 0})) << "or recovery would find it again";
  EXPECT_TRUE(started_ids().empty());
  const auto waiting = parts_.ledger.take_settlements(100);
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].kind, Settlement::Kind::kBury);
  EXPECT_EQ(waiting[0].work.deliveries, 3U);
  EXPECT_EQ(waiting[0].attempts, 3U);
  EXPECT_TRUE(waiting[0].work.entry.deleted());
  parts_.ledger.settled(waiting[0], true);
  EXPECT_FALSE(parts_.ledger.holds({1, 0}));
}

TEST_F(IntakeTest, HasNoLettersWrittenWhereThereAreNone) {
  parts_.config.letters.enabled = false;
  hold_taken(parts_.shared, taken({}, {}, {{1, 0}}), {});
  EXPECT_TRUE(settlements().empty());
  EXPECT_EQ(parts_.counters.dead_lettered, 0U);
  EXPECT_EQ(parts_.counters.trimmed, 1U);
}

class IntakeFetchTest : public IntakeTest {
 protected:
  /// Without a payload, and running.
  Work shed(StreamId id, std::size_t lane) {
    Work head = work_of({id.ms, 0}, {});
    Work behind = work_of(id, {});
    head.lane = behind.lane = lane;
    head = running(parts_.ledger, head);
    parts_.ledger.rest(head.ticket, TimePoint::max(), {});
    EXPECT_TRUE(parts_.ledger.hold(behind));
    parts_.ledger.drop(head.ticket);
    const auto works = started();
    EXPECT_EQ(works.size(), 1U);
    return works.front();
  }
  void fetch(std::vector<Work>& works) {
    std::vector<Work*> all;
    for (Work& work : works) all.push_back(&work);
    fetch_again(parts_.shared, eval_, all);
  }

  std::string retaken_;
  std::string found_;  // of hold.lua
  ScriptedEval eval_{[this](const std::string& script, const Words&) {
    return script == "retake" ? retaken_ : found_;
  }};
};

TEST_F(IntakeFetchTest, BringsPayloadsBackWithTheirLeases) {
  std::vector<Work> works{shed({1, 1}, 1), shed({2, 1}, 2)};
  ASSERT_TRUE(works[0].shed);
  parts_.clock.advance(20s);
  retaken_ =
      "*5\r\n$3\r\n0-0\r\n*2\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\na\r\n"
      "*2\r\n$3\r\n2-1\r\n*2\r\n$1\r\nf\r\n$1\r\nb\r\n*0\r\n*2\r\n:1\r\n:1\r\n*0\r\n";
  fetch(works);
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-1", "1", "2-1", "1"}}));
  for (const Work& work : works) {
    EXPECT_FALSE(work.shed);
    EXPECT_FALSE(work.reclaimed) << "it had no start";
    EXPECT_EQ(work.leased_at, parts_.clock.now());
  }
  EXPECT_EQ(works[1].entry.at("f"), "b");
  parts_.ledger.put_back(works[1].ticket);
  EXPECT_EQ(started().at(0).entry.at("f"), "b") << "the ledger has it too";
}

TEST_F(IntakeFetchTest, LosesNothingThatHasLeftTheStream) {
  std::vector<Work> works{shed({1, 1}, 1), shed({2, 1}, 2), shed({3, 1}, 3)};
  // The first one has its letter, the second one was pending no more, the third one is a peer's.
  retaken_ = "*5\r\n$3\r\n0-0\r\n*0\r\n*1\r\n$3\r\n1-1\r\n*0\r\n*0\r\n";
  found_ = "*1\r\n*2\r\n:2\r\n:0\r\n";
  fetch(works);
  for (const Work& work : works) EXPECT_TRUE(work.shed);
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
  EXPECT_EQ(parts_.counters.leases_lost, 1U);
  const auto settlements = parts_.ledger.take_settlements(10);
  ASSERT_EQ(settlements.size(), 1U);
  EXPECT_EQ(settlements[0].work.ticket.id, (StreamId{2, 1}));
  EXPECT_EQ(settlements[0].kind, Settlement::Kind::kBury);
  EXPECT_TRUE(settlements[0].work.entry.deleted());
  EXPECT_EQ(settlements[0].reason, "trimmed: deleted from the stream while it was held");
  EXPECT_FALSE(parts_.ledger.holds({1, 1}));
  EXPECT_TRUE(parts_.ledger.holds({2, 1}));
  EXPECT_FALSE(parts_.ledger.holds({3, 1}));
}

TEST_F(IntakeFetchTest, DropsWhatHasLeftTheStreamWhereThereAreNoLetters) {
  parts_.config.letters.enabled = false;
  std::vector<Work> works{shed({1, 1}, 1)};
  retaken_ = "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*0\r\n";
  found_ = "*1\r\n*1\r\n:2\r\n";
  fetch(works);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.ledger.settlements(), 0U);
}

TEST_F(IntakeFetchTest, QueuesAgainWhatIsOursAfterAll) {
  std::vector<Work> works{shed({1, 1}, 1)};
  retaken_ = "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*0\r\n";
  found_ = "*1\r\n*1\r\n:1\r\n";
  fetch(works);
  EXPECT_EQ(started_ids(), (Ids{{1, 1}}));
}

TEST_F(IntakeFetchTest, IsNotTriedWhereTheServerHasPutItAsideAlready) {
  Work head = work_of({1, 0}, {});
  head.lane = 7;
  head = running(parts_.ledger, head);
  parts_.ledger.rest(head.ticket, TimePoint::max(), {});
  Work behind = work_of({2, 0}, {});
  behind.lane = 7;
  ASSERT_TRUE(parts_.ledger.hold(behind));
  hold_taken(parts_.shared, taken({}, {}, {{2, 0}}), {});
  EXPECT_TRUE(parts_.ledger.holds({1, 0}));
  EXPECT_FALSE(parts_.ledger.holds({2, 0}));
  EXPECT_EQ(parts_.counters.dead_lettered, 1U);
}

TEST_F(IntakeFetchTest, IsPutAsideOnceWhereASweepFindsItAsWell) {
  std::vector<Work> works{shed({2, 1}, 7)};
  hold_taken(parts_.shared,
             scripts::Taken{.trimmed = {{.id = {2, 1}, .owner = "alice", .deliveries = 1}}}, {});
  EXPECT_TRUE(settlements().empty());
  retaken_ = "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*0\r\n";
  found_ = "*1\r\n*1\r\n:2\r\n";
  fetch(works);
  EXPECT_EQ(parts_.ledger.settlements(), 1U);
  EXPECT_EQ(parts_.counters.trimmed, 1U);
}

TEST_F(IntakeFetchTest, PutsRightWhatAReadHasReset) {
  Work parked = running(parts_.ledger, detail::taken_over({1, 0}, 3, parts_.clock.now()));
  parts_.ledger.fail(
      {.kind = Settlement::Kind::kPark, .work = parked, .due = parts_.clock.now() + 10s});
  parts_.ledger.settled(parts_.ledger.take_settlements(1).front(), true);
  EXPECT_EQ(hold_new(parts_.shared, batch({{1, 0}}), parts_.clock.now()), 0U);
  found_ = "*1\r\n*2\r\n:1\r\n:1\r\n";
  undo_resets(parts_.shared, eval_);
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "1", "3", "20000",
                                             "1-0", "3", "3", "20000"}}))
      << "the second one if the reply to the first one was lost";
  undo_resets(parts_.shared, eval_);
  EXPECT_EQ(eval_.args.size(), 1U) << "there is nothing more to be put right";
  EXPECT_EQ(parts_.ledger.parked().size(), 1U);
}

TEST_F(IntakeTest, GivesBackWhatWasNotStartedWithTheCountOfItsStarts) {
  hold_new(parts_.shared, batch({{1, 0}}), {});
  hold_taken(parts_.shared, taken({{2, 0}}, {3}), {});
  const auto holds = giving_back(parts_.config, parts_.ledger.close());
  ASSERT_EQ(holds.size(), 2U);
  EXPECT_EQ(holds[0].id, (StreamId{1, 0}));
  EXPECT_EQ(holds[0].expected, 1U);
  EXPECT_EQ(holds[0].next, 0U) << "delivered once, never started";
  EXPECT_EQ(holds[0].idle, 30s) << "a peer may take it at once";
  EXPECT_EQ(holds[1].expected, 3U);
  EXPECT_EQ(holds[1].next, 3U);
}

}  // namespace
}  // namespace millrace::detail
