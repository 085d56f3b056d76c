#include <millrace/dead_letters.hpp>

#include "worker_test.hpp"

#include <vector>

namespace millrace::test {
namespace {

class DeadLettersTest : public WorkerTest {
 protected:
  WorkerOptions burying() {
    WorkerOptions options = this->options();
    options.min_idle = 1h;
    options.block = 50ms;
    return options;
  }

  /// 1-0 to `count`-0, each in a dead letter.
  void bury(std::size_t count) {
    append_ids(count);
    ConsumerWorker worker{stream(), burying(),
                          [](const Delivery&) { return Verdict::dead_letter("no"); }};
    worker.start();
    ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == count; }));
  }
};

TEST_F(DeadLettersTest, AreListedWithTheirStory) {
  bury(3);
  raw()("XADD", "{s}:dlq", "*", "no", "letter");
  const DeadLetters letters{stream()};
  EXPECT_EQ(letters.count(), 4U);
  const auto list = letters.list();
  ASSERT_EQ(list.size(), 3U) << "what is no letter is left out";
  EXPECT_EQ(list[1].stream, "s");
  EXPECT_EQ(list[1].entry_id, (StreamId{2, 0}));
  EXPECT_EQ(list[1].group, "g");
  EXPECT_EQ(list[1].consumer, "alice");
  EXPECT_EQ(list[1].attempts, 1U);
  EXPECT_EQ(list[1].reason, "no");
  EXPECT_EQ(list[1].fields, (OwnedFields{{"f", "v"}}));
  EXPECT_TRUE(list[1].failed_at.has_value());
  EXPECT_EQ(letters.list(RangeStart::after(list[1].id)).size(), 1U);
}

TEST_F(DeadLettersTest, ComeBackToTheirStreamForAllGroups) {
  bury(2);
  const DeadLetters letters{stream()};
  EXPECT_TRUE(letters.redrive(letters.list()[0].id));
  EXPECT_EQ(letters.count(), 1U);
  EXPECT_EQ(raw()("XLEN", "s"), ":3");
  const auto last = stream().tail(1);
  EXPECT_EQ(last[0].to_owned().fields, (OwnedFields{{"f", "v"}}));
  EXPECT_FALSE(letters.redrive({7, 7}));
  EXPECT_EQ(letters.redrive_all(), 1U);
  EXPECT_EQ(letters.redrive_all(), 0U);
  EXPECT_EQ(raw()("XLEN", "s"), ":4");
}

TEST_F(DeadLettersTest, ComeBackToTheirGroupAlone) {
  bury(2);
  raw()("XDEL", "s", "2-0");
  const DeadLetters letters{
      EventStream{ConnectionPool{server().options()}, "s", {.claim_min_idle = 1h}}};
  const auto list = letters.list();
  EXPECT_EQ(letters.redrive_to_group(list[0].id), DeadLetters::Redriven::kDone);
  EXPECT_EQ(letters.redrive_to_group(list[0].id), DeadLetters::Redriven::kNoLetter);
  EXPECT_EQ(letters.redrive_to_group(list[1].id), DeadLetters::Redriven::kTrimmed);
  EXPECT_EQ(letters.count(), 1U) << "the one whose entry is gone stays";
  EXPECT_EQ(pending(), 1);

  Journal journal;
  WorkerOptions options = burying();
  options.reap_every = 20ms;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_EQ(journal.calls()[0].attempt, 1U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(DeadLettersTest, OfMoreFieldsThanAScriptCanPassOnComeBackWhole) {
  OwnedFields fields;
  for (int i = 0; i < 4'500; ++i) fields.emplace_back("n" + std::to_string(i), "v");
  stream().add(fields);
  {
    ConsumerWorker worker{stream(), burying(),
                          [](const Delivery&) { return Verdict::dead_letter("no"); }};
    worker.start();
    ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  }
  const DeadLetters letters{stream()};
  EXPECT_EQ(letters.redrive_all(), 1U);
  const auto last = stream().tail(1);
  EXPECT_EQ(last[0].to_owned().fields, fields);
  EXPECT_EQ(letters.count(), 0U);
}

TEST_F(DeadLettersTest, WithoutAPayloadOrOfAnotherStreamStayWhereTheyAre) {
  bury(1);
  raw()("XADD", "{s}:dlq", "*", "dlq_stream", "other", "dlq_id", "9-0", "dlq_group", "g",
        "dlq_consumer", "", "dlq_attempts", "", "dlq_failed_ms", "", "dlq_first_failed_ms", "",
        "dlq_reason", "no", "f", "v");
  raw()("XADD", "{s}:dlq", "*", "dlq_stream", "s", "dlq_id", "9-0", "dlq_group", "g",
        "dlq_consumer", "", "dlq_attempts", "", "dlq_failed_ms", "", "dlq_first_failed_ms", "",
        "dlq_reason", "trimmed");
  const DeadLetters letters{stream()};
  EXPECT_EQ(letters.redrive_all(), 1U);
  EXPECT_EQ(letters.count(), 2U);
}

TEST_F(DeadLettersTest, DoNotTakeAnEntryFromWhoHandlesIt) {
  bury(1);
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "FORCE", "JUSTID");
  const DeadLetters letters{stream()};
  EXPECT_EQ(letters.redrive_to_group(letters.list()[0].id), DeadLetters::Redriven::kDone);
  EXPECT_EQ(owner({1, 0}), "bob");
}

TEST_F(DeadLettersTest, AreDiscardedOneByOne) {
  bury(2);
  const DeadLetters letters{stream()};
  EXPECT_TRUE(letters.discard(letters.list()[0].id));
  EXPECT_FALSE(letters.discard({7, 7}));
  EXPECT_EQ(letters.count(), 1U);
}

}  // namespace
}  // namespace millrace::test
