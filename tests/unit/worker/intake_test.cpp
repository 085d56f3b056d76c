#include "worker/intake.hpp"

#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<StreamId>;

class IntakeTest : public ::testing::Test {
 protected:
  static scripts::Taken taken(const Ids& ids, std::vector<std::uint64_t> deliveries,
                              Ids deleted = {}) {
    std::vector<OwnedEntry> entries;
    for (const StreamId id : ids) entries.push_back({.id = id, .fields = {{"f", "v"}}});
    return {.entries = EntryBatch::of(entries),
            .deliveries = std::move(deliveries),
            .deleted_ids = std::move(deleted)};
  }
  static Ids ids(const std::vector<Work>& batch) {
    Ids ids;
    for (const Work& work : batch) {
      EXPECT_EQ(work.ticket.id, work.entry.id());
      ids.push_back(work.ticket.id);
    }
    return ids;
  }
  /// Runs hold_orphans() where the server says of each entry whether it is still ours.
  std::vector<Work> orphans(const scripts::Taken& own, const std::string& answer) {
    const auto eval = [&](const CallSpec&, const Script&, std::span<const std::string_view>,
                          std::span<const std::string_view> args) {
      asked_.emplace_back(args.begin(), args.end());
      if (answer.empty()) throw IoError{"lost"};
      return resp(answer);
    };
    return hold_orphans(parts_.shared, eval, {"s", "g", "alice"}, own);
  }

  Parts parts_;
  std::vector<Words> asked_;
};

TEST_F(IntakeTest, HoldsNewEntries) {
  const auto read = taken({{1, 0}, {2, 0}}, {});
  const TimePoint sent_at = parts_.clock.now();
  const auto batch = hold_new(parts_.shared, read.entries, sent_at);
  EXPECT_EQ(ids(batch), (Ids{{1, 0}, {2, 0}}));
  EXPECT_FALSE(batch[0].reclaimed);
  EXPECT_EQ(batch[0].deliveries, 1U);
  EXPECT_EQ(batch[0].leased_at, sent_at);
  EXPECT_EQ(parts_.counters.delivered, 2U);
  EXPECT_EQ(parts_.counters.reclaimed, 0U);
}

TEST_F(IntakeTest, SkipsNewEntriesThatAreHeld) {
  parts_.ledger.take({2, 0});
  const auto read = taken({{1, 0}, {2, 0}, {3, 0}}, {});
  EXPECT_EQ(ids(hold_new(parts_.shared, read.entries, {})), (Ids{{1, 0}, {3, 0}}));
  EXPECT_EQ(parts_.counters.delivered, 2U);
}

TEST_F(IntakeTest, HoldsWhatWasTakenOverAndTellsOfIt) {
  const auto page = taken({{1, 0}, {2, 0}}, {4, 0}, {{3, 0}});
  const auto batch = hold_taken(parts_.shared, page, parts_.clock.now());
  EXPECT_EQ(ids(batch), (Ids{{1, 0}, {2, 0}}));
  EXPECT_TRUE(batch[0].reclaimed);
  EXPECT_EQ(batch[0].deliveries, 4U);
  EXPECT_EQ(batch[1].deliveries, 0U);
  EXPECT_EQ(parts_.counters.delivered, 2U);
  EXPECT_EQ(parts_.counters.reclaimed, 2U);
  EXPECT_EQ(parts_.counters.trimmed, 1U);
  EXPECT_EQ(parts_.observer->reclaimed(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(parts_.observer->deleted(), (Ids{{3, 0}}));
}

TEST_F(IntakeTest, SkipsWhatIsHeldAndKeepsEachCountWithItsEntry) {
  parts_.ledger.take({1, 0});
  const auto page = taken({{1, 0}, {2, 0}}, {7, 8});
  const auto batch = hold_taken(parts_.shared, page, {});
  ASSERT_EQ(ids(batch), (Ids{{2, 0}}));
  EXPECT_EQ(batch[0].deliveries, 8U);
  EXPECT_EQ(parts_.observer->reclaimed(), (Ids{{2, 0}}));
}

TEST_F(IntakeTest, TellsNobodyOfAnEmptyPage) {
  parts_.ledger.take({1, 0});
  class Silent : public Observer {
    void on_reclaimed(std::span<const StreamId>, std::span<const StreamId>) override {
      ADD_FAILURE() << "there was nothing to tell";
    }
  };
  const Events events{std::make_shared<Silent>()};
  const Shared shared{.config = parts_.config,
                      .pool = parts_.pool,
                      .ledger = parts_.ledger,
                      .counters = parts_.counters,
                      .events = events,
                      .status = parts_.status,
                      .group = parts_.group,
                      .gate = parts_.gate,
                      .clock = parts_.clock};
  hold_taken(shared, taken({{1, 0}}, {1}), {});
  hold_taken(shared, taken({}, {}), {});
}

TEST_F(IntakeTest, RemembersOfAnEntryThatIsHeldThatItWasTrimmed) {
  const Ticket ticket = parts_.ledger.take({1, 0}).value();
  hold_taken(parts_.shared, taken({}, {}, {{1, 0}}), {});
  parts_.ledger.start(ticket);
  parts_.ledger.finish(ticket, parts_.clock.now());
  EXPECT_EQ(parts_.ledger.take_acks(1).maybe_gone, 1U);
}

TEST_F(IntakeTest, KeepsOrphansFromPeersWithTheCountsTheyHave) {
  const auto batch = orphans(taken({{1, 0}, {2, 0}}, {3, 1}), "*2\r\n:1\r\n:1\r\n");
  EXPECT_EQ(ids(batch), (Ids{{1, 0}, {2, 0}}));
  EXPECT_TRUE(batch[0].reclaimed);
  EXPECT_EQ(batch[0].deliveries, 3U);
  EXPECT_EQ(asked_, (std::vector<Words>{{"g", "alice", "0", "1-0", "3", "3", "2-0", "1", "1"}}));
}

TEST_F(IntakeTest, LeavesOrphansThatAPeerWasQuickerToTake) {
  const auto batch = orphans(taken({{1, 0}, {2, 0}}, {1, 1}), "*2\r\n:0\r\n:1\r\n");
  EXPECT_EQ(ids(batch), (Ids{{2, 0}}));
  EXPECT_EQ(parts_.ledger.size(), 1U);
  EXPECT_EQ(parts_.observer->reclaimed(), (Ids{{2, 0}}));
  EXPECT_EQ(parts_.counters.leases_lost, 0U) << "they were never held";
}

TEST_F(IntakeTest, HoldsOrphansThatWereTrimmedSinceTheyWereListed) {
  const auto batch = orphans(taken({{1, 0}, {2, 0}}, {1, 1}), "*2\r\n:2\r\n:1\r\n");
  EXPECT_EQ(ids(batch), (Ids{{1, 0}, {2, 0}})) << "their payloads had come before";
}

TEST_F(IntakeTest, LeavesAloneWhatIsHeldAndWhatWasLeft) {
  parts_.ledger.take({1, 0});
  const Ticket left = parts_.ledger.take({2, 0}).value();
  parts_.ledger.start(left);
  parts_.ledger.leave(left, parts_.clock.now(), 30s);
  EXPECT_TRUE(orphans(taken({{1, 0}, {2, 0}}, {1, 1}), "").empty());
  EXPECT_TRUE(asked_.empty()) << "whose idle time is not touched";
  EXPECT_EQ(parts_.counters.delivered, 0U);
}

TEST_F(IntakeTest, HoldsNoOrphanWhereTheConnectionIsLost) {
  EXPECT_THROW(orphans(taken({{1, 0}, {2, 0}}, {1, 1}), ""), IoError);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(orphans(taken({{1, 0}, {2, 0}}, {1, 1}), "*2\r\n:1\r\n:1\r\n").size(), 2U);
}

TEST_F(IntakeTest, LetsGoOfWhatWasNotStartedWithTheCountOfItsStarts) {
  const auto read = taken({{1, 0}}, {});
  const auto page = taken({{2, 0}}, {3});
  auto batch = hold_new(parts_.shared, read.entries, {});
  const auto reclaimed = hold_taken(parts_.shared, page, {});
  batch.insert(batch.end(), reclaimed.begin(), reclaimed.end());

  const auto holds = let_go(parts_.shared, batch);
  ASSERT_EQ(holds.size(), 2U);
  EXPECT_EQ(holds[0].id, (StreamId{1, 0}));
  EXPECT_EQ(holds[0].expected, 1U);
  EXPECT_EQ(holds[0].next, 0U) << "delivered once, never started";
  EXPECT_EQ(holds[1].expected, 3U);
  EXPECT_EQ(holds[1].next, 3U);
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

}  // namespace
}  // namespace millrace::detail
