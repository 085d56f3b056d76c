#include "support/stream_test.hpp"

#include <vector>

namespace millrace::test {
namespace {

class Erase : public StreamTest {};

TEST_P(Erase, DeletesById) {
  given_three_entries();
  EXPECT_EQ(s().erase({StreamId{1, 0}, StreamId{3, 0}, StreamId{9, 0}}), 2U);
  EXPECT_EQ(s().replay().ids(), (Ids{{2, 0}}));
}

TEST_P(Erase, TakesListsRangesAndBatches) {
  given_three_entries();
  const std::vector<StreamId> ids{{1, 0}};
  EXPECT_EQ(s().erase(ids), 1U);
  EXPECT_EQ(s().erase({StreamId{2, 0}}), 1U);
  EXPECT_EQ(s().erase(s().replay()), 1U);
  EXPECT_EQ(s().length(), 0U);
}

TEST_P(Erase, LeavesPendingEntriesPendingAsDeleted) {
  given_three_pending();
  s().erase({StreamId{2, 0}});
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
  EXPECT_EQ(text(s().consume_own_pending("g", "alice")), "1-0[f=v] 2-0[deleted] 3-0[f=v]");
}

TEST_P(Erase, OfNothingNeedsNoServer) {
  EXPECT_EQ(s().erase({}), 0U);
  EXPECT_EQ(s().pool().stats().created, 0U);
}

TEST_P(Erase, OfAMissingStreamErasesNothing) { EXPECT_EQ(s().erase({StreamId{1, 0}}), 0U); }

class DeleteStream : public StreamTest {};

TEST_P(DeleteStream, TakesItsGroupsWithIt) {
  given_three_pending();
  EXPECT_TRUE(s().delete_stream());
  EXPECT_FALSE(s().delete_stream());
  append(s(), {{1, 0}});
  EXPECT_TRUE(s().groups().empty());
}

TEST_P(DeleteStream, RefusesAKeyOfAnotherType) {
  raw()("SET", "s", "no stream");
  const auto error = thrown<WrongTypeError>([&] { s().delete_stream(); });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(raw()("GET", "s"), R"("no stream")");
}

class LastId : public StreamTest {};

TEST_P(LastId, IsWhereAutomaticIdsGoOn) {
  append(s(), {{1, 0}});
  const StreamId ahead{9'999'999'999'999, 0};
  s().set_last_id(ahead);
  EXPECT_EQ(s().info().last_generated_id, ahead);
  EXPECT_EQ(s().add({{"f", "v"}}), ahead.next());
}

TEST_P(LastId, CannotGoBelowTheLastEntry) {
  append(s(), {{5, 0}});
  EXPECT_THROW(s().set_last_id({4, 0}), ServerError);
  EXPECT_EQ(s().info().last_generated_id, (StreamId{5, 0}));
}

TEST_P(LastId, OfAMissingStreamCannotBeSet) {
  EXPECT_THROW(s().set_last_id({5, 0}), ServerError);
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

MILLRACE_ON_BOTH_PROTOCOLS(Erase);
MILLRACE_ON_BOTH_PROTOCOLS(DeleteStream);
MILLRACE_ON_BOTH_PROTOCOLS(LastId);

}  // namespace
}  // namespace millrace::test
