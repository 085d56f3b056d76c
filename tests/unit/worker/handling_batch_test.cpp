#include "support/entries.hpp"
#include "unit/worker/handling_fixture.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;

class HandlingBatchTest : public HandlingTest {
 protected:
  static std::vector<Verdict> acks(std::span<const Delivery> batch) {
    return std::vector<Verdict>(batch.size(), Verdict::ack());
  }
  std::vector<Work> three() { return {fresh({1, 0}), fresh({2, 0}), fresh({3, 0})}; }
};

TEST_F(HandlingBatchTest, CallsTheHandlerOnceForAll) {
  auto handling = handling_of_batches([](std::span<const Delivery> batch) {
    EXPECT_EQ(batch.size(), 3U);
    EXPECT_EQ(batch[2].entry.id(), (StreamId{3, 0}));
    return acks(batch);
  });
  using enum Handling::Result;
  EXPECT_EQ(handling.handle(three(), eval_),
            (std::vector<Result>{kSucceeded, kSucceeded, kSucceeded}));
  EXPECT_EQ(batches_, (std::vector<std::size_t>{3}));
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}, {2, 0}, {3, 0}}));
}

TEST_F(HandlingBatchTest, TakesAsManyEntriesACallAsArePrefetched) {
  EXPECT_EQ(handling_of_batches(acks).entries_a_call(), 16U);
  EXPECT_EQ(handling().entries_a_call(), 1U);
}

TEST_F(HandlingBatchTest, DoesAsEachVerdictSays) {
  auto handling = handling_of_batches([](std::span<const Delivery>) {
    return std::vector{Verdict::ack(), Verdict::retry_after(9s), Verdict::dead_letter("no")};
  });
  using enum Handling::Result;
  EXPECT_EQ(handling.handle(three(), eval_), (std::vector<Result>{kSucceeded, kFailed, kFailed}));
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
  const auto failures = settlements();
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0].work.ticket.id, (StreamId{2, 0}));
  EXPECT_EQ(failures[0].due, parts_.clock.now() + 9s);
  EXPECT_EQ(failures[1].work.ticket.id, (StreamId{3, 0}));
  EXPECT_EQ(failures[1].reason, "no");
}

TEST_F(HandlingBatchTest, RetriesAllWhereTheVerdictsAreNotAsManyAsTheEntries) {
  auto handling =
      handling_of_batches([](std::span<const Delivery>) { return std::vector{Verdict::ack()}; });
  handling.handle(three(), eval_);
  const auto failures = settlements();
  ASSERT_EQ(failures.size(), 3U);
  for (const Settlement& one : failures) EXPECT_EQ(one.kind, Settlement::Kind::kPark);
  EXPECT_EQ(parts_.counters.succeeded, 0U);
  EXPECT_EQ(parts_.observer->exceptions(),
            (std::vector<std::string>(3, "the handler returned 1 verdicts for 3 entries")));
}

TEST_F(HandlingBatchTest, RetriesAllAfterAnException) {
  auto handling = handling_of_batches(
      [](std::span<const Delivery>) -> std::vector<Verdict> { throw std::runtime_error{"no"}; });
  handling.handle(three(), eval_);
  EXPECT_EQ(settlements().size(), 3U);
  EXPECT_EQ(parts_.observer->exceptions(), (std::vector<std::string>(3, "no")));
}

TEST_F(HandlingBatchTest, BuriesAllAfterAPermanentError) {
  auto handling = handling_of_batches(
      [](std::span<const Delivery>) -> std::vector<Verdict> { throw PermanentError{"never"}; });
  handling.handle(three(), eval_);
  const auto failures = settlements();
  ASSERT_EQ(failures.size(), 3U);
  for (const Settlement& one : failures) {
    EXPECT_EQ(one.kind, Settlement::Kind::kBury);
    EXPECT_EQ(one.reason, "never");
  }
}

TEST_F(HandlingBatchTest, MakesTheLastStartOfAnEntryACallOfItsOwn) {
  const std::vector<Work> works{fresh({1, 0}), fresh({2, 0}), taken_over(4, {3, 0}),
                                taken_over(1, {4, 0})};
  auto handling = handling_of_batches(acks);
  handling.handle(works, eval_);
  EXPECT_EQ(batches_, (std::vector<std::size_t>{2, 1, 1}));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{1, 1, 5, 2}));
}

TEST_F(HandlingBatchTest, AsksAboutAllAtOnceAndLeavesOutWhatIsNotOurs) {
  answer_ = "*1\r\n*3\r\n:1\r\n:0\r\n:2\r\n";
  const std::vector<Work> works{taken_over(1, {1, 0}), fresh({2, 0}), taken_over(2, {3, 0}),
                                taken_over(3, {4, 0})};
  Ids called;
  auto handling = handling_of_batches([&](std::span<const Delivery> batch) {
    for (const Delivery& one : batch) called.push_back(one.entry.id());
    return acks(batch);
  });
  using enum Handling::Result;
  EXPECT_EQ(handling.handle(works, eval_),
            (std::vector<Result>{kSucceeded, kSucceeded, kNotOurs, kSucceeded}));
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "", "1-0", "1", "2", "0", "3-0",
                                             "2", "3", "0", "4-0", "3", "4", "0"}}));
  EXPECT_EQ(called, (Ids{{1, 0}, {2, 0}, {4, 0}}));
  EXPECT_EQ(attempts_, (std::vector<std::uint64_t>{2, 1, 4}));
  EXPECT_EQ(parts_.observer->leases_lost(), (Ids{{3, 0}}));
}

TEST_F(HandlingBatchTest, CallsNobodyWhereNoneIsOurs) {
  answer_ = "*1\r\n*2\r\n:0\r\n:0\r\n";
  auto handling = handling_of_batches(acks);
  handling.handle(std::vector<Work>{taken_over(1, {1, 0}), taken_over(1, {2, 0})}, eval_);
  EXPECT_TRUE(batches_.empty());
  EXPECT_EQ(parts_.counters.leases_lost, 2U);
}

TEST_F(HandlingBatchTest, LetsGoOfWhatItCouldNotAskAboutAndKeepsWhatWasDone) {
  auto handling = handling_of_batches(acks);
  const std::vector<Work> works{fresh({1, 0}), taken_over(4, {2, 0}), fresh({3, 0})};
  eval_throws_ = true;
  EXPECT_THROW(handling.handle(works, eval_), IoError);
  EXPECT_EQ(batches_, (std::vector<std::size_t>{1}));
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
  EXPECT_EQ(parts_.ledger.size(), 1U);
}

TEST_F(HandlingBatchTest, PutsBackWhatIsLeftOfABatchWhenAStopComes) {
  Handling* self = nullptr;
  auto handling = handling_of_batches([&](std::span<const Delivery> batch) {
    self->drain();
    return acks(batch);
  });
  self = &handling;
  using enum Handling::Result;
  EXPECT_EQ(handling.handle(std::vector<Work>{fresh({1, 0}), taken_over(4, {2, 0})}, eval_),
            (std::vector<Result>{kSucceeded, kNotStarted}));
  EXPECT_TRUE(parts_.ledger.running().empty());
  EXPECT_EQ(parts_.ledger.close().size(), 1U);
  EXPECT_EQ(handling.finished_while_draining(), 1U);
}

}  // namespace
}  // namespace millrace::detail
