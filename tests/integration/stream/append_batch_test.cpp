#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <algorithm>

namespace millrace::test {
namespace {

class AppendBatch : public StreamTest {
 protected:
  static std::vector<OwnedFields> entries(std::size_t count) {
    std::vector<OwnedFields> list;
    for (std::size_t i = 0; i < count; ++i) list.push_back({{"n", std::to_string(i)}});
    return list;
  }

  static Ids ids_of(const std::vector<AddResult>& results) {
    Ids ids;
    for (const AddResult& result : results) {
      if (result.id) ids.push_back(*result.id);
    }
    return ids;
  }

  static std::size_t unknown_among(const std::vector<AddResult>& results) {
    return static_cast<std::size_t>(
        std::count_if(results.begin(), results.end(), [](const AddResult& result) {
          return result.error && result.error->outcome() == Outcome::kUnknown && !result.id;
        }));
  }
};

TEST_P(AppendBatch, EachEntryHasItsResultInOrder) {
  const std::vector<AddResult> results = s().add_batch(entries(3));
  ASSERT_EQ(results.size(), 3U);
  const EntryBatch batch = s().replay();
  EXPECT_EQ(ids_of(results), batch.ids());
  EXPECT_EQ(batch[0].at("n"), "0");
  EXPECT_EQ(batch[2].at("n"), "2");
}

TEST_P(AppendBatch, EventsStartWithTypeAndTimeToo) {
  const std::vector<Event> events{{"placed", {{"id", "1"}}}, {"paid", {{"id", "2"}}}};
  const std::vector<AddResult> results = s().produce_batch(events);
  const EntryBatch batch = s().replay();
  ASSERT_EQ(batch.size(), 2U);
  EXPECT_EQ(ids_of(results), batch.ids());
  EXPECT_EQ(batch[0][0], (Field{"type", "placed"}));
  EXPECT_EQ(batch[1][0], (Field{"type", "paid"}));
  EXPECT_EQ(batch[1][1].first, "ts_ms");
  EXPECT_EQ(batch[1][2], (Field{"id", "2"}));
}

TEST_P(AppendBatch, AnEventThatIsRefusedLeavesItsNeighboursAlone) {
  const std::vector<Event> events{{"a", {{"f", "1"}}}, {"b", {{"type", "2"}}}, {"c", {{"f", "3"}}}};
  const std::vector<AddResult> results = s().produce_batch(events);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_TRUE(results[0].id.has_value());
  EXPECT_FALSE(results[1].id.has_value());
  ASSERT_TRUE(results[1].error.has_value());
  EXPECT_THROW(results[1].error->raise(), InvalidArgument);
  EXPECT_TRUE(results[2].id.has_value());
  EXPECT_EQ(s().length(), 2U);
}

TEST_P(AppendBatch, AnEntryWithoutFieldsIsRefusedAlone) {
  const std::vector<OwnedFields> list{{{"f", "v"}}, {}, {{"f", "v"}}};
  const std::vector<AddResult> results = s().add_batch(list);
  ASSERT_EQ(results.size(), 3U);
  ASSERT_TRUE(results[1].error.has_value());
  EXPECT_THROW(results[1].error->raise(), InvalidArgument);
  EXPECT_EQ(s().length(), 2U);
}

TEST_P(AppendBatch, TakesOneRoundTrip) {
  s().pool().ping();
  const auto reads = [&] {
    return std::stoul(info_field(raw(), "stats", "total_reads_processed"));
  };
  const auto before = reads();
  s().add_batch(entries(100));
  EXPECT_LT(reads() - before, 10U);
}

TEST_P(AppendBatch, OfNothingIsNothing) {
  EXPECT_TRUE(s().add_batch({}).empty());
  EXPECT_TRUE(s().produce_batch({}).empty());
  EXPECT_EQ(s().pool().stats().created, 0U);
}

TEST_P(AppendBatch, RefusesAnExactId) {
  EXPECT_THROW(s().add_batch(entries(1), {.id = AddId::exactly({1, 0})}), InvalidArgument);
  EXPECT_EQ(s().length(), 0U);
}

TEST_P(AppendBatch, TrimsOnceAfterTheLastEntry) {
  const std::vector<AddResult> results =
      s().add_batch(entries(5), {.trim = Trim::max_len(2).exactly()});
  const Ids ids = ids_of(results);
  ASSERT_EQ(ids.size(), 5U);
  EXPECT_EQ(s().replay().ids(), (Ids{ids[3], ids[4]}));

  const EventStream capped = stream("t", {.retention = Trim::max_len(1).exactly()});
  capped.add_batch(entries(5));
  EXPECT_EQ(capped.length(), 1U);
}

TEST_P(AppendBatch, TrimsToAnIdOrAnAgeOrWithinALimitAsWell) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  s().add_batch(entries(2), {.trim = Trim::min_id({3, 0}).exactly()});
  EXPECT_EQ(s().length(), 3U);
  EXPECT_EQ(s().replay().ids().at(0), (StreamId{3, 0}));
  s().add_batch(entries(2), {.trim = Trim::max_age(1h).exactly()});
  EXPECT_EQ(s().length(), 4U) << "3-0 is of 1970";

  s().delete_stream();
  s().add_batch(entries(500));
  s().add_batch(entries(2), {.trim = Trim::max_len(10).limit(200)});
  EXPECT_EQ(s().length(), 302U) << "two nodes of 100 went, and not the two after them";
}

TEST_P(AppendBatch, HasNeitherIdNorErrorWhereNoStreamMayBeMade) {
  const std::vector<AddResult> results = s().add_batch(entries(2), {.create_stream = false});
  ASSERT_EQ(results.size(), 2U);
  for (const AddResult& result : results) {
    EXPECT_FALSE(result.id.has_value());
    EXPECT_FALSE(result.error.has_value());
  }
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

TEST_P(AppendBatch, KeepsTheIdsThatSucceededBesideTheErrorsOfTheRest) {
  append(s(), {{5, StreamId::max().seq - 1}});
  const std::vector<AddResult> results = s().add_batch(entries(3), {.id = AddId::at_ms(5)});
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].id, (StreamId{5, StreamId::max().seq}));
  for (const std::size_t refused : {1U, 2U}) {
    ASSERT_TRUE(results[refused].error.has_value());
    EXPECT_EQ(results[refused].error->code(), Error::Code::kServer);
    EXPECT_EQ(results[refused].error->outcome(), Outcome::kNotApplied);
  }
  EXPECT_EQ(s().length(), 2U);
}

TEST_P(AppendBatch, FailsEachEntryOnAKeyOfAnotherType) {
  raw()("SET", "s", "no stream");
  const std::vector<AddResult> results = s().add_batch(entries(2));
  ASSERT_EQ(results.size(), 2U);
  for (const AddResult& result : results) {
    ASSERT_TRUE(result.error.has_value());
    EXPECT_THROW(result.error->raise(), WrongTypeError);
    EXPECT_THAT(result.error->what(),
                ::testing::StartsWith("XADD on 's' at " + options().unix_socket + ": WRONGTYPE"));
  }
}

TEST_P(AppendBatch, WhoseRepliesWereLostIsUnknownAndNotRepeated) {
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream stream{ConnectionPool{through}, "s"};
  stream.pool().ping();
  proxy.lose_reply_to("XADD");

  const std::vector<AddResult> results = stream.add_batch(entries(5));

  EXPECT_TRUE(proxy.has_lost());
  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(unknown_among(results), 5U);
  EXPECT_EQ(s().length(), 5U);
}

TEST_P(AppendBatch, ThatTimedOutIsUnknownAndMayArriveLater) {
  ThrowawayServer slow;
  ConnectionOptions hasty = options(slow);
  hasty.command_timeout = 1s;
  const EventStream stream{ConnectionPool{hasty}, "s"};
  stream.pool().ping();

  slow.pause();
  const std::vector<AddResult> results = stream.add_batch(entries(5));
  slow.resume();

  ASSERT_EQ(results.size(), 5U);
  EXPECT_EQ(unknown_among(results), 5U);
  EXPECT_THROW(results[0].error->raise(), TimeoutError);
  const EventStream look{ConnectionPool{options(slow)}, "s"};
  EXPECT_TRUE(wait_until([&] { return look.length() == 5; }));
}

TEST_P(AppendBatch, WithoutAServerIsNotApplied) {
  ConnectionOptions nobody = options();
  nobody.unix_socket = "/nonexistent/socket";
  const std::vector<AddResult> results =
      EventStream{ConnectionPool{nobody}, "s"}.add_batch(entries(2));
  ASSERT_EQ(results.size(), 2U);
  for (const AddResult& result : results) {
    ASSERT_TRUE(result.error.has_value());
    EXPECT_EQ(result.error->outcome(), Outcome::kNotApplied);
    EXPECT_THROW(result.error->raise(), ConnectError);
  }
}

MILLRACE_ON_BOTH_PROTOCOLS(AppendBatch);

}  // namespace
}  // namespace millrace::test
