#include "worker_test.hpp"

#include <atomic>
#include <stdexcept>
#include <vector>

namespace millrace::test {
namespace {

class WorkerDeadLetter : public WorkerTest {
 protected:
  using WorkerTest::WorkerTest;

  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 100ms;
    patient.reap_every = 0ms;
    patient.retry_backoff = 5ms;
    return patient;
  }

  Ids letter_ids(const std::string& key = "{s}:dlq") {
    Ids ids;
    for (const RawReply& letter : raw()("XRANGE", key, "-", "+").elements) {
      ids.push_back(StreamId::parse(letter[1].field("dlq_id").text));
    }
    return ids;
  }
  RawReply letter(std::size_t index = 0) { return raw()("XRANGE", "{s}:dlq", "-", "+")[index][1]; }
};

TEST_F(WorkerDeadLetter, TellsTheWholeStory) {
  raw()("XADD", "s", "1-0", "f", "1", "f", "2", "", "\xff");
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([](const Delivery&) -> Verdict {
                          throw std::runtime_error{"no such card"};
                        })};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  EXPECT_EQ(journal.size(), 5U);
  EXPECT_EQ(pending(), 0);

  const RawReply letter = this->letter();
  EXPECT_EQ(letter.field("dlq_stream").text, "s");
  EXPECT_EQ(letter.field("dlq_id").text, "1-0");
  EXPECT_EQ(letter.field("dlq_group").text, "g");
  EXPECT_EQ(letter.field("dlq_consumer").text, "alice");
  EXPECT_EQ(letter.field("dlq_attempts").text, "5");
  EXPECT_EQ(letter.field("dlq_reason").text, "its handler failed 5 times: no such card");
  const auto failed = std::stoull(letter.field("dlq_failed_ms").text);
  const auto first = std::stoull(letter.field("dlq_first_failed_ms").text);
  EXPECT_LE(first, failed);
  EXPECT_GT(first, 1'700'000'000'000U);
  ASSERT_EQ(letter.elements.size(), 16U + 6U);
  EXPECT_EQ(letter[16].text + letter[17].text + letter[18].text + letter[19].text, "f1f2");
  EXPECT_EQ(letter[20].text, "");
  EXPECT_EQ(letter[21].text, "\xff");
  EXPECT_EQ(heard().dead_letters(), (Ids{{1, 0}}));
}

TEST_F(WorkerDeadLetter, ComesAtOnceWhereTheHandlerSaysSo) {
  append_ids(3);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            return Verdict::dead_letter("the account is closed");
                          }
                          if (delivery.entry.id() == StreamId{2, 0}) {
                            throw PermanentError{"no such account"};
                          }
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 2; }));
  ASSERT_TRUE(journal.wait_for_calls(3));
  EXPECT_EQ(letter_ids(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(letter(0).field("dlq_reason").text, "the account is closed");
  EXPECT_EQ(letter(1).field("dlq_reason").text, "no such account");
  EXPECT_EQ(letter(0).field("dlq_attempts").text, "1");
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDeadLetter, IsMadeWithoutAStartWhereAllStartsWereHad) {
  append_ids(2);
  orphan("bob");
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "RETRYCOUNT", 5, "JUSTID");
  raw()("XCLAIM", "s", "g", "bob", 0, "2-0", "IDLE", 7'200'000, "RETRYCOUNT", 4, "JUSTID");
  WorkerOptions options = patient();
  options.reap_every = 20ms;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  ASSERT_TRUE(journal.wait_for(Ids{{2, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{2, 0}})) << "4 starts: there is one left";
  EXPECT_EQ(letter_ids(), (Ids{{1, 0}}));
  EXPECT_EQ(letter().field("dlq_attempts").text, "5");
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDeadLetter, IsMadeOfAnEntryWithTheHighestCountThereIs) {
  append_ids(2);
  orphan("alice");
  raw()("XCLAIM", "s", "g", "alice", 0, "1-0", "RETRYCOUNT", "9223372036854775807", "JUSTID");
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{2, 0}}));
  EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; })) << heard().text();
  EXPECT_EQ(letter_ids(), (Ids{{1, 0}}));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDeadLetter, HasThePayloadOfAnEntryThatWasTrimmedWhileItWasHeld) {
  append_ids(1);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.attempt == 1) raw()("XTRIM", "s", "MAXLEN", 0);
                          return Verdict::retry();
                        })};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  EXPECT_EQ(journal.size(), 5U);
  EXPECT_EQ(letter().field("dlq_attempts").text, "5");
  EXPECT_EQ(letter().field("f").text, "v");
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDeadLetter, SaysThatAnEntryWasTrimmedBeforeAnybodyHadIt) {
  append_ids(3);
  orphan("bob");
  raw()("XCLAIM", "s", "g", "bob", 0, "2-0", "IDLE", 7'200'000, "JUSTID");
  raw()("XDEL", "s", "2-0");
  WorkerOptions options = patient();
  options.reap_every = 20ms;
  ConsumerWorker worker{stream(), options, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return heard().deleted() == Ids{{2, 0}}; }));
  EXPECT_EQ(letter_ids(), (Ids{{2, 0}}));
  EXPECT_EQ(letter().field("dlq_reason").text.substr(0, 7), "trimmed");
  EXPECT_EQ(worker.stats().dead_lettered, 1U);
}

TEST_F(WorkerDeadLetter, IsNotWrittenOfWhatAPeerDeletesWhenItHasHandledIt) {
  WorkerOptions options = patient();
  options.min_idle = 1s;
  options.block = 20ms;
  options.reap_every = 20ms;
  const EventStream erasing = stream();
  const auto erase = [&](const Delivery& delivery) { erasing.erase({delivery.entry.id()}); };
  WorkerOptions other = options;
  other.consumer = "bob";
  ConsumerWorker alice{stream(), options, erase};
  ConsumerWorker bob{stream(), other, erase};
  alice.start();
  bob.start();
  constexpr std::uint64_t kEntries = 500;
  append_ids(kEntries);
  ASSERT_TRUE(
      wait_until([&] { return alice.stats().succeeded + bob.stats().succeeded == kEntries; }));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(letter_ids(), Ids{});
  EXPECT_EQ(alice.stats().leases_lost + bob.stats().leases_lost, 0U);
}

TEST_F(WorkerDeadLetter, IsNotWrittenByAPeerOfWhatIsHeldForLong) {
  append_ids(1);
  WorkerOptions options = patient();
  options.min_idle = 500ms;
  options.lease_renew_every = 50ms;
  options.block = 20ms;
  options.reap_every = 20ms;
  WorkerOptions other = options;
  other.consumer = "bob";
  Gate gate;
  ConsumerWorker alice{stream(), options, [&](const Delivery&) { gate.pass(); }};
  alice.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  raw()("XDEL", "s", "1-0");
  ConsumerWorker bob{stream(), other, [](const Delivery&) {}};
  bob.start();
  EXPECT_TRUE(wait_until([&] {
    return raw()("XPENDING", "s", "g", "1-0", "1-0", 1)[0][2].integer > 600;
  })) << "it cannot be renewed";
  const auto pages = calls_of("xpending");
  EXPECT_TRUE(wait_until([&] { return calls_of("xpending") > pages + 50; }));
  EXPECT_EQ(letter_ids(), Ids{});
  gate.open();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(alice.stats().succeeded, 1U);
  EXPECT_EQ(letter_ids(), Ids{});
}

TEST_F(WorkerDeadLetter, GoesWhereItIsToldTo) {
  append_ids(1);
  WorkerOptions options = patient();
  options.dead_letter.stream = "graveyard";
  ConsumerWorker worker{stream(), options,
                        [](const Delivery&) { return Verdict::dead_letter("no"); }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  EXPECT_EQ(letter_ids("graveyard"), (Ids{{1, 0}}));
}

TEST_F(WorkerDeadLetter, GoesToASinkAndIsAcknowledgedWhenThatReturns) {
  append_ids(2);
  std::vector<DeadLetter> letters;
  int refusals = 3;
  WorkerOptions options = patient();
  options.dead_letter.sink = [&](const DeadLetter& letter) {
    if (letter.entry_id == StreamId{1, 0} && refusals-- > 0) throw std::runtime_error{"full"};
    letters.push_back(letter);
  };
  ConsumerWorker worker{stream(), options,
                        [](const Delivery&) { return Verdict::dead_letter("no"); }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 2; }));
  worker.stop();
  ASSERT_EQ(letters.size(), 2U);
  EXPECT_EQ(letters[0].entry_id, (StreamId{2, 0})) << "the first was refused";
  EXPECT_EQ(letters[1].entry_id, (StreamId{1, 0}));
  EXPECT_EQ(letters[1].reason, "no");
  EXPECT_EQ(letters[1].fields, (OwnedFields{{"f", "v"}}));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(raw()("EXISTS", "{s}:dlq"), ":0");
}

/// What is in the hands of a sink is acknowledged when that returns, wherever it came from.
class WorkerSink : public WorkerDeadLetter {
 protected:
  /// A sink that refuses the first letter, and takes the next when the gate opens.
  WorkerOptions with_sink() {
    WorkerOptions options = patient();
    options.dead_letter.sink = [this](const DeadLetter& letter) {
      if (refusals_-- > 0) throw std::runtime_error{"full"};
      gate_.pass();
      letters_.push_back(letter);
    };
    return options;
  }
  /// 1-0 is pending for `consumer`, which has been silent for long, and not in the stream.
  void given_trimmed(std::string_view consumer, milliseconds idle = 2h) {
    append_ids(1);
    orphan(consumer);
    raw()("XCLAIM", "s", "g", consumer, 0, "1-0", "IDLE", idle.count(), "RETRYCOUNT", 3, "JUSTID");
    raw()("XDEL", "s", "1-0");
    ASSERT_EQ(pending(), 1);
  }
  void is_acknowledged_last(const ConsumerWorker& worker) {
    ASSERT_TRUE(gate_.wait_for_arrivals(1));
    EXPECT_EQ(pending(), 1);
    EXPECT_EQ(worker.stats().dead_lettered, 0U);
    gate_.open();
    EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
    EXPECT_TRUE(nothing_is_pending());
  }

  std::atomic<int> refusals_{1};
  Gate gate_;
  std::vector<DeadLetter> letters_;
};

TEST_F(WorkerSink, HasAnEntryThatWasTrimmedWhileAPeerHadItBeforeItIsAcknowledged) {
  given_trimmed("bob");
  WorkerOptions options = with_sink();
  options.reap_every = 20ms;
  ConsumerWorker worker{stream(), options, [](const Delivery&) {}};
  worker.start();
  is_acknowledged_last(worker);
  worker.stop();
  ASSERT_EQ(letters_.size(), 1U);
  EXPECT_EQ(letters_[0].entry_id, (StreamId{1, 0}));
  EXPECT_EQ(worker.stats().trimmed, 1U) << "it was found once, however often it was looked at";
}

TEST_F(WorkerSink, HasAnOwnEntryThatWasTrimmedBeforeItIsAcknowledged) {
  given_trimmed("alice", 0ms);
  ConsumerWorker worker{stream(), with_sink(), [](const Delivery&) {}};
  worker.start();
  is_acknowledged_last(worker);
  worker.stop();
  ASSERT_EQ(letters_.size(), 1U);
  EXPECT_EQ(letters_[0].entry_id, (StreamId{1, 0}));
  EXPECT_EQ(letters_[0].attempts, 3U);
  EXPECT_EQ(consumers(), std::vector<std::string>{});
}

TEST_F(WorkerSink, HasAnEntryOnDemandBeforeItIsAcknowledged) {
  given_trimmed("bob");
  gate_.open();
  ConsumerWorker worker{stream(), with_sink(), [](const Delivery&) {}};
  const ReapReport report = worker.reap_idle_pending();
  EXPECT_EQ(report.deleted_ids, (Ids{{1, 0}}));
  EXPECT_EQ(report.error.value().prefix(), "SINK");
  EXPECT_EQ(pending(), 1);
  EXPECT_EQ(worker.reap_idle_pending().error, std::nullopt);
  EXPECT_EQ(letters_.size(), 1U);
  EXPECT_EQ(pending(), 0);
}

TEST_F(WorkerDeadLetter, IsNotWrittenWhereThatIsOff) {
  append_ids(1);
  WorkerOptions options = patient();
  options.dead_letter.enabled = false;
  options.max_deliveries = 2;
  Journal journal;
  ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                          return delivery.attempt < 8 ? Verdict::retry() : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(8));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(raw()("EXISTS", "{s}:dlq"), ":0");
}

TEST_F(WorkerDeadLetter, WaitsAtTheLimit) {
  append_ids(2);
  WorkerOptions options = patient();
  options.dead_letter.max_length = 1;
  ConsumerWorker worker{stream(), options,
                        [](const Delivery&) { return Verdict::dead_letter("no"); }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  const Ids first = letter_ids();
  ASSERT_TRUE(wait_until([&] { return pending() == 1; }));
  raw()("DEL", "{s}:dlq");
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 2; }));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_NE(letter_ids(), first);
}

TEST_F(WorkerDeadLetter, OfMoreFieldsThanAScriptCanPassOnIsWhole) {
  OwnedFields fields;
  for (int i = 0; i < 5'000; ++i) fields.emplace_back("n" + std::to_string(i), std::to_string(i));
  stream().add(fields);
  ConsumerWorker worker{stream(), patient(),
                        [](const Delivery&) { return Verdict::dead_letter("no"); }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  const RawReply letter = this->letter();
  ASSERT_EQ(letter.elements.size(), 16U + 10'000U);
  EXPECT_EQ(letter.field("n4999").text, "4999");
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDeadLetter, IsWrittenAlthoughTheServerIsOutOfMemory) {
  append_ids(16);
  Journal journal;
  ConsumerWorker worker{stream(), patient(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0} && delivery.attempt == 1) {
                            raw()("CONFIG", "SET", "maxmemory", 1);
                          }
                          return Verdict::dead_letter("no");
                        })};
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 16; }));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(letter_ids().size(), 16U);
}

TEST_F(WorkerDeadLetter, WaitsWhereItsStreamIsNone) {
  raw()("SET", "{s}:dlq", "a string");
  append_ids(3);
  Journal journal;
  ConsumerWorker worker{
      stream(), patient(), journal.handler([](const Delivery& delivery) {
        return delivery.entry.id() == StreamId{1, 0} ? Verdict::dead_letter("no") : Verdict::ack();
      })};
  worker.start();
  ASSERT_TRUE(journal.wait_for_calls(3));
  ASSERT_TRUE(wait_until([&] { return pending() == 1; })) << "others are acknowledged";
  ASSERT_TRUE(wait_until([&] { return heard().text().find("WRONGTYPE") != std::string::npos; }));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
  raw()("DEL", "{s}:dlq");
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerDeadLetter, AcknowledgesALastStartBeforeANeighbourCanEndTheProcess) {
  append_ids(2);
  orphan("bob");
  // Both have had all their starts but one.
  raw()("XCLAIM", "s", "g", "alice", 0, "1-0", "2-0", "RETRYCOUNT", 4, "JUSTID");
  Journal journal;
  std::vector<std::int64_t> pending_then;
  WorkerOptions two = patient();
  two.concurrency = 2;
  ConsumerWorker worker{stream(), two, journal.handler([&](const Delivery& delivery) {
                          EXPECT_EQ(delivery.attempt, 5U);
                          RawClient raw{server().options()};  // of these calls none overlaps
                          pending_then.push_back(raw("XPENDING", "s", "g")[0].integer);
                          return Verdict::ack();
                        })};
  worker.start();
  EXPECT_TRUE(nothing_is_pending());
  worker.stop();
  EXPECT_THAT(pending_then, ::testing::ElementsAre(2, 1));
}

}  // namespace
}  // namespace millrace::test
