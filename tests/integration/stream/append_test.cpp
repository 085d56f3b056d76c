#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <map>

namespace millrace::test {
namespace {

using ::testing::HasSubstr;

class Append : public StreamTest {
 protected:
  static std::uint64_t now_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
  }

  EventStream behind(const Proxy& proxy) const {
    ConnectionOptions through = proxy.options();
    through.resp_version = GetParam();
    EventStream stream{ConnectionPool{through}, "s"};
    stream.pool().ping();
    return stream;
  }
};

TEST_P(Append, AnEventStartsWithItsTypeAndThisHostsTime) {
  const std::uint64_t before = now_ms();
  const StreamId id = s().produce("order.placed", {{"order", "17"}, {"total", "9.90"}});
  const std::uint64_t after = now_ms();

  const EntryBatch batch = s().replay();
  ASSERT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch[0].id(), id);
  ASSERT_EQ(batch[0].size(), 4U);
  EXPECT_EQ(batch[0][0], (Field{"type", "order.placed"}));
  EXPECT_EQ(batch[0][1].first, "ts_ms");
  const std::uint64_t time = std::stoull(std::string{batch[0][1].second});
  EXPECT_GE(time, before);
  EXPECT_LE(time, after);
  EXPECT_EQ(batch[0][2], (Field{"order", "17"}));
  EXPECT_EQ(batch[0][3], (Field{"total", "9.90"}));
}

TEST_P(Append, AnEventMayHaveNoPayload) {
  s().produce("tick", OwnedFields{});
  EXPECT_EQ(s().tail(1).begin()->size(), 2U);
}

TEST_P(Append, APayloadThatWouldShadowTypeOrTimeIsRefused) {
  for (const char* name : {"type", "ts_ms"}) {
    const auto error = thrown<InvalidArgument>([&] {
      s().produce("t", {{"a", "1"}, {name, "2"}});
    });
    EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
  EXPECT_EQ(s().length(), 0U);
}

TEST_P(Append, FieldsKeepTheirOrderAndNamesMayRepeat) {
  s().add({{"f", "1"}, {"z", "3"}, {"f", "2"}, {"a", "4"}}, {.id = AddId::exactly({1, 0})});
  EXPECT_EQ(text(s().replay()), "1-0[f=1 z=3 f=2 a=4]");
}

TEST_P(Append, FieldsComeFromAnyRangeOfPairs) {
  const std::map<std::string, std::string> map{{"a", "1"}, {"b", "2"}};
  s().add(map, {.id = AddId::exactly({1, 0})});
  const EntryBatch batch = s().replay();
  s().add(batch[0], {.id = AddId::exactly({2, 0})});
  EXPECT_EQ(text(s().replay()), "1-0[a=1 b=2] 2-0[a=1 b=2]");
}

TEST_P(Append, AnEntryWithoutFieldsIsRefused) {
  const auto error = thrown<InvalidArgument>([&] { s().add(OwnedFields{}); });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(raw()("EXISTS", "s"), ":0");
}

TEST_P(Append, IdsAreAutomaticExactOrOfAMillisecond) {
  EXPECT_EQ(s().add({{"f", "v"}}, {.id = AddId::exactly({5, 3})}), (StreamId{5, 3}));
  EXPECT_EQ(s().add({{"f", "v"}}, {.id = AddId::at_ms(5)}), (StreamId{5, 4}));
  EXPECT_EQ(s().add({{"f", "v"}}, {.id = AddId::at_ms(6)}), (StreamId{6, 0}));
  const auto automatic = s().add({{"f", "v"}});
  ASSERT_TRUE(automatic.has_value());
  EXPECT_GT(automatic->ms, 1'600'000'000'000U);
}

TEST_P(Append, ATrimComesWithTheAppend) {
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  s().add({{"f", "v"}}, {.id = AddId::exactly({4, 0}), .trim = Trim::max_len(2).exactly()});
  EXPECT_EQ(s().replay().ids(), (Ids{{3, 0}, {4, 0}}));
  s().add({{"f", "v"}}, {.id = AddId::exactly({5, 0}), .trim = Trim::min_id({4, 0}).exactly()});
  EXPECT_EQ(s().replay().ids(), (Ids{{4, 0}, {5, 0}}));
  s().add({{"f", "v"}}, {.trim = Trim::max_age(1h).exactly()});
  EXPECT_EQ(s().length(), 1U);
}

TEST_P(Append, ATrimMayBeLimited) {
  s().add_batch(std::vector<OwnedFields>(500, OwnedFields{{"f", "v"}}));
  s().add({{"f", "v"}}, {.trim = Trim::max_len(10).limit(200)});
  EXPECT_EQ(s().length(), 301U);  // two nodes of 100 went, and not the two after them
}

TEST_P(Append, AStreamsRetentionTrimsEachAppend) {
  const EventStream capped = stream("s", {.retention = Trim::max_len(2).exactly()});
  append(capped, {{1, 0}, {2, 0}, {3, 0}});
  EXPECT_EQ(s().replay().ids(), (Ids{{2, 0}, {3, 0}}));
  capped.produce("t", {{"f", "v"}});
  EXPECT_EQ(s().length(), 2U);
}

TEST_P(Append, ATrimOfTheCallReplacesTheStreamsRetention) {
  const EventStream capped = stream("s", {.retention = Trim::max_len(1).exactly()});
  append(s(), {{1, 0}, {2, 0}, {3, 0}});
  capped.add({{"f", "v"}}, {.trim = Trim::max_len(3).exactly()});
  EXPECT_EQ(s().length(), 3U);
}

TEST_P(Append, NothingIsTrimmedUnlessAskedFor) {
  s().ensure_group("g", GroupStart::beginning());
  const std::vector<OwnedFields> thousand(1000, OwnedFields{{"f", "v"}});
  for (int i = 0; i < 20; ++i) s().add_batch(thousand);
  EXPECT_EQ(s().length(), 20'000U);

  std::size_t delivered = 0;
  for (EntryBatch batch = s().consume("g", "alice", kAllNow); !batch.empty();
       batch = s().consume("g", "alice", kAllNow)) {
    delivered += batch.size();
  }
  EXPECT_EQ(delivered, 20'000U);
}

TEST_P(Append, AnAppendWhoseReplyWasLostIsUnknownAndNotRepeated) {
  Proxy proxy{server()};
  const EventStream stream = behind(proxy);
  proxy.lose_reply_to("XADD");

  const auto error = thrown<IoError>([&] { stream.add({{"f", "v"}}); });

  EXPECT_EQ(error.outcome(), Outcome::kUnknown);
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(s().length(), 1U);
}

TEST_P(Append, AnAppendThatNeverArrivedIsUnknownAsWell) {
  Proxy proxy{server()};
  const EventStream stream = behind(proxy);
  proxy.lose_request("XADD");
  EXPECT_EQ(thrown<IoError>([&] {
              stream.produce("t", {{"f", "v"}});
            }).outcome(),
            Outcome::kUnknown);
  EXPECT_EQ(s().length(), 0U);
}

TEST_P(Append, AnExactIdThatNeverArrivedIsSentOnceMore) {
  Proxy proxy{server()};
  const EventStream stream = behind(proxy);
  proxy.lose_request("XADD");
  EXPECT_EQ(stream.add({{"f", "v"}}, {.id = AddId::exactly({5, 0})}), (StreamId{5, 0}));
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(text(s().replay()), "5-0[f=v]");
}

TEST_P(Append, AnExactIdThatArrivedIsFoundBelowLaterEntries) {
  Proxy proxy{server()};
  const EventStream stream = behind(proxy);
  proxy.lose_reply_to("XADD");
  EXPECT_EQ(stream.add({{"f", "v"}}, {.id = AddId::exactly({5, 0})}), (StreamId{5, 0}));
  append(s(), {{6, 0}});
  EXPECT_EQ(text(s().replay()), "5-0[f=v] 6-0[f=v]");
}

TEST_P(Append, AMessageNamesCommandKeyAndEndpointAndNoPayload) {
  raw()("SET", "orders", "no stream");
  const auto error = thrown<WrongTypeError>([&] {
    stream("orders").add({{"card", "4929-hidden"}});
  });
  EXPECT_THAT(error.what(), HasSubstr("XADD"));
  EXPECT_THAT(error.what(), HasSubstr("orders"));
  EXPECT_THAT(error.what(), HasSubstr(options().unix_socket));
  EXPECT_THAT(error.what(), ::testing::Not(HasSubstr("hidden")));
}

TEST_P(Append, AnExactIdThatAnotherEntryHasIsNotTakenForTheLostOne) {
  append(s(), {{5, 0}});
  Proxy proxy{server()};
  const EventStream stream = behind(proxy);
  proxy.lose_reply_to("XADD");
  const auto error = thrown<ServerError>([&] {
    stream.add({{"f", "another"}}, {.id = AddId::exactly({5, 0})});
  });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_EQ(text(s().replay()), "5-0[f=v]");
}

MILLRACE_ON_BOTH_PROTOCOLS(Append);

}  // namespace
}  // namespace millrace::test
