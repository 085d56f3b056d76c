#include "conformance.hpp"
#include "support/proxy.hpp"

namespace millrace::test {
namespace {

constexpr std::uint64_t kMaxSeq = StreamId::max().seq;

constexpr const char* kTooSmall =
    "-ERR The ID specified in XADD is equal or smaller than the target stream top item";

class Producing : public StreamTest {};
class BareProducing : public BareConformanceTest {};

TEST_P(BareProducing, EntriesOfOneMillisecondAreNumberedFromZero) {
  // One transaction nearly always fits a millisecond; where it does not, the next one will.
  RawReply ids;
  ASSERT_TRUE(wait_until([&] {
    bare("DEL", "s");
    bare("MULTI");
    for (int i = 0; i < 3; ++i) bare("XADD", "s", "*", "f", "v");
    ids = bare("EXEC");
    return StreamId::parse(ids[0].text).ms == StreamId::parse(ids[2].text).ms;
  }));
  const StreamId first = StreamId::parse(ids[0].text);
  EXPECT_EQ(first.seq, 0U);
  EXPECT_EQ(StreamId::parse(ids[1].text), first.next());
  EXPECT_EQ(StreamId::parse(ids[2].text), first.next().next());
}

TEST_P(Producing, AnAutomaticIdGoesOnFromALastIdThatIsAheadOfTheClock) {
  const StreamId ahead{9'999'999'999'999, 5};
  append(s(), {ahead});
  EXPECT_EQ(s().add({{"f", "v"}}), ahead.next());
}

TEST_P(Producing, TheFirstIdOfMillisecondZeroIsOne) {
  EXPECT_EQ(s().add({{"f", "v"}}, {.id = AddId::at_ms(0)}), (StreamId{0, 1}));
}

TEST_P(Producing, TheIdZeroIsRefusedAndMakesNoStream) {
  EXPECT_EQ(raw()("XADD", "s", "0-0", "f", "v"),
            "-ERR The ID specified in XADD must be greater than 0-0");
  const auto error = thrown<Error>([&] {
    s().add({{"f", "v"}}, {.id = AddId::exactly(StreamId::min())});
  });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

TEST_P(Producing, AMillisecondWithoutRoomIsRefused) {
  append(s(), {{1, kMaxSeq}});
  const auto error = thrown<ServerError>([&] { s().add({{"f", "v"}}, {.id = AddId::at_ms(1)}); });
  EXPECT_EQ(error.prefix(), "ERR");
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  // Redis 7.0 says what the append had said that failed before; within a transaction nothing else
  // comes between the two.
  raw()("MULTI");
  raw()("XADD", "s", "1-5", "f", "v");
  raw()("XADD", "s", "1-*", "f", "v");
  const RawReply refusals = raw()("EXEC");
  EXPECT_EQ(refusals[0], kTooSmall);
  EXPECT_EQ(refusals[1], kTooSmall);
  EXPECT_EQ(s().length(), 1U);
}

TEST_P(Producing, AStreamThatHadTheLastPossibleIdTakesNoMore) {
  append(s(), {StreamId::max()});
  const auto error = thrown<ServerError>([&] { s().add({{"f", "v"}}); });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(raw()("XADD", "s", "*", "f", "v"),
            "-ERR The stream has exhausted the last possible ID, unable to add more items");
}

TEST_P(Producing, AMillisecondAloneMeansItsFirstEntry) {
  EXPECT_EQ(s().add({{"f", "v"}}, {.id = AddId::exactly(StreamId::parse("9"))}), (StreamId{9, 0}));
  EXPECT_EQ(raw()("XADD", "t", "9", "f", "v"), R"("9-0")");
}

TEST_P(Producing, NoStreamIsMadeWhereThatWasRuledOut) {
  EXPECT_EQ(s().add({{"f", "v"}}, {.create_stream = false}), std::nullopt);
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
  append(s(), {{1, 0}});
  EXPECT_EQ(s().add({{"f", "v"}}, {.id = AddId::exactly({2, 0}), .create_stream = false}),
            (StreamId{2, 0}));
}

TEST_P(Producing, ATrimToNothingTakesTheNewEntryToo) {
  EXPECT_EQ(
      s().add({{"f", "v"}}, {.id = AddId::exactly({5, 5}), .trim = Trim::max_len(0).exactly()}),
      (StreamId{5, 5}));
  EXPECT_EQ(s().length(), 0U);
  EXPECT_EQ(raw()("EXISTS", "s"), ":1");
}

TEST_P(Producing, AnExactCapIsKeptToTheEntry) {
  for (int i = 0; i < 1000; ++i) s().add({{"f", "v"}}, {.trim = Trim::max_len(5).exactly()});
  EXPECT_EQ(s().length(), 5U);
}

TEST_P(Producing, AnApproximateCapKeepsWholeNodes) {
  for (int i = 0; i < 250; ++i) s().add({{"f", "v"}}, {.trim = Trim::max_len(10)});
  EXPECT_EQ(s().length(), 50U);  // nodes of 100 entries, the default: two of them went
}

TEST_P(BareProducing, AnOddNumberOfFieldsIsRefused) {
  EXPECT_EQ(bare("XADD", "s", "*", "f"), "-ERR wrong number of arguments for 'xadd' command");
  EXPECT_EQ(bare("XADD", "s", "*", "f", "v", "g"),
            "-ERR wrong number of arguments for 'xadd' command");
}

TEST_P(Producing, TheLastIdOutlivesItsEntry) {
  append(s(), {{5, 0}});
  ASSERT_EQ(s().erase({StreamId{5, 0}}), 1U);
  EXPECT_EQ(raw()("XADD", "s", "4-0", "f", "v"), kTooSmall);
  EXPECT_EQ(raw()("XADD", "s", "5-0", "f", "v"), kTooSmall);
  const auto error = thrown<ServerError>([&] { append(s(), {{4, 0}}); });
  EXPECT_THAT(error.what(), ::testing::HasSubstr(kTooSmall + 1));
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(s().length(), 0U);
}

TEST_P(Producing, AnExplicitIdThatIsSentAgainIsRefusedAsEqualOrSmaller) {
  append(s(), {{5, 0}});
  EXPECT_EQ(raw()("XADD", "s", "5-0", "f", "v"), kTooSmall);
  EXPECT_THROW(append(s(), {{5, 0}}), ServerError);
  EXPECT_EQ(s().length(), 1U);
}

TEST_P(Producing, AnExplicitIdWhoseReplyWasLostIsLookedUpBeforeItCountsAsAppended) {
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream behind{ConnectionPool{through}, "s"};
  proxy.lose_reply_to("XADD");

  EXPECT_EQ(behind.add({{"f", "v"}}, {.id = AddId::exactly({5, 0})}), (StreamId{5, 0}));

  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(text(s().replay()), "5-0[f=v]");
}

TEST_P(BareProducing, IdempotenceIsEachProducersOwn) {
  MILLRACE_NEEDS_REDIS(8, 6);
  const RawReply first = bare("XADD", "s", "IDMP", "p1", "i", "*", "f", "a");
  EXPECT_EQ(bare("XADD", "s", "IDMP", "p1", "i", "*", "f", "b"), first.str());
  EXPECT_NE(bare("XADD", "s", "IDMP", "p2", "i", "*", "f", "a").text, first.text);
  EXPECT_EQ(bare("XLEN", "s"), ":2");
}

TEST_P(BareProducing, AutomaticIdempotenceIsBlindToTheOrderOfFields) {
  MILLRACE_NEEDS_REDIS(8, 6);
  const RawReply first = bare("XADD", "s", "IDMPAUTO", "p", "*", "a", "1", "b", "2");
  EXPECT_EQ(bare("XADD", "s", "IDMPAUTO", "p", "*", "b", "2", "a", "1"), first.str());
  EXPECT_NE(bare("XADD", "s", "IDMPAUTO", "p", "*", "a", "1", "b", "2", "a", "1").text, first.text);
}

TEST_P(BareProducing, IdempotenceGoesWithAutomaticIdsAlone) {
  MILLRACE_NEEDS_REDIS(8, 6);
  const char* refused = "-ERR syntax error, IDMP/IDMPAUTO can be used only with auto-generated IDs";
  EXPECT_EQ(bare("XADD", "s", "IDMP", "p", "i", "1-1", "f", "v"), refused);
  EXPECT_EQ(bare("XADD", "s", "IDMP", "p", "i", "1-*", "f", "v"), refused);
  EXPECT_EQ(bare("EXISTS", "s"), ":0");
}

TEST_P(Producing, AServerThatIsFullStillServesItsConsumers) {
  ThrowawayServer full;
  RawClient look{full.options()};
  const EventStream stream{ConnectionPool{options(full)}, "s"};
  append(stream, {{1, 0}, {2, 0}, {3, 0}});
  stream.ensure_group("g", GroupStart::beginning());
  ASSERT_EQ(look("CONFIG", "SET", "maxmemory", "1"), "+OK");

  const auto error = thrown<OutOfMemoryError>([&] { stream.add({{"f", "v"}}); });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(error.retryable());

  EXPECT_EQ(stream.consume("g", "alice", kAllNow).size(), 3U);
  EXPECT_EQ(stream.ack("g", {StreamId{1, 0}}), 1U);
  EXPECT_EQ(stream.autoclaim("g", "bob", {.min_idle = 0ms}).claimed.size(), 2U);
  EXPECT_EQ(stream.trim(Trim::max_len(1).exactly()), 2U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Producing);
MILLRACE_ON_BOTH_PROTOCOLS(BareProducing);

}  // namespace
}  // namespace millrace::test
