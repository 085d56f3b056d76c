#include <millrace/event_stream.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;

/// There is no server: what is not refused at once is a ConnectError.
EventStream stream(StreamOptions options = {}) {
  return EventStream{ConnectionPool{{.unix_socket = "/nonexistent/millrace"}}, "s", options};
}

constexpr std::size_t kTooMany = std::numeric_limits<std::size_t>::max();
const std::vector<StreamId> kIds{{1, 0}};

struct Case {
  const char* says;  ///< In the message.
  std::function<void(const EventStream&)> call;
};

void expect_refused(const std::vector<Case>& cases) {
  const EventStream s = stream();
  for (const Case& each : cases) {
    try {
      each.call(s);
      ADD_FAILURE() << "not refused: " << each.says;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string{error.what()}.find(each.says), std::string::npos) << error.what();
      EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
    } catch (const std::exception& error) {
      ADD_FAILURE() << each.says << " is not refused but tried: " << error.what();
    }
  }
}

TEST(EventStream, RefusesAStreamThatCannotWork) {
  const ConnectionPool pool{{.unix_socket = "/nonexistent/millrace"}};
  EXPECT_THROW(EventStream(pool, ""), InvalidArgument);
  EXPECT_THROW(EventStream(pool, "s", {.claim_min_idle = 0ms}), InvalidArgument);
  EXPECT_THROW(EventStream(pool, "s", {.retention = Trim::max_len(std::uint64_t{1} << 63)}),
               InvalidArgument);
}

TEST(EventStream, NeedsNoServerToBeMade) {
  const EventStream s = stream({.retention = Trim::max_len(5), .claim_min_idle = 7ms});
  EXPECT_EQ(s.key(), "s");
  EXPECT_EQ(s.options().retention, Trim::max_len(5));
  EXPECT_EQ(s.options().claim_min_idle, 7ms);
  EXPECT_EQ(s.pool().stats().created, 0U);
  EXPECT_THROW(s.length(), ConnectError);
}

TEST(EventStream, IsNeverAnEmptyHandle) {
  EventStream s = stream();
  const EventStream moved = std::move(s);
  EXPECT_EQ(s.key(), "s");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(moved.key(), "s");
}

TEST(EventStream, RefusesNamesThatAreEmpty) {
  expect_refused({
      {"group", [](const auto& s) { s.ensure_group("", GroupStart::now()); }},
      {"group", [](const auto& s) { s.delete_group(""); }},
      {"group", [](const auto& s) { s.set_group_position("", GroupStart::now()); }},
      {"group", [](const auto& s) { s.create_consumer("", "a"); }},
      {"consumer", [](const auto& s) { s.create_consumer("g", ""); }},
      {"group", [](const auto& s) { s.consume("", "a"); }},
      {"consumer", [](const auto& s) { s.consume("g", ""); }},
      {"group", [](const auto& s) { s.consume_own_pending("", "a"); }},
      {"consumer", [](const auto& s) { s.consume_own_pending("g", ""); }},
      {"group", [](const auto& s) { s.ack("", kIds); }},
      {"group", [](const auto& s) { s.ack("", std::vector<StreamId>{}); }},
      {"group", [](const auto& s) { s.autoclaim_page("", "a"); }},
      {"consumer", [](const auto& s) { s.autoclaim("g", ""); }},
      {"group", [](const auto& s) { s.claim("", "a", 0ms, kIds); }},
      {"consumer", [](const auto& s) { s.claim("g", "", 0ms, kIds); }},
      {"consumer", [](const auto& s) { s.claim_ids("g", "", 0ms, kIds); }},
      {"group", [](const auto& s) { s.handover_pending("", "a", "b"); }},
      {"from", [](const auto& s) { s.handover_pending("g", "", "b"); }},
      {"to", [](const auto& s) { s.handover_pending("g", "a", ""); }},
      {"group", [](const auto& s) { s.remove_consumer("", "a"); }},
      {"consumer", [](const auto& s) { s.remove_consumer("g", ""); }},
      {"group", [](const auto& s) { s.consumers(""); }},
      {"group", [](const auto& s) { s.pending(""); }},
      {"group", [](const auto& s) { s.pending_entries(""); }},
      {"consumer", [](const auto& s) { s.pending_entries("g", {.consumer = ""}); }},
  });
}

TEST(EventStream, RefusesCountsThatCannotWork) {
  expect_refused({
      {"count is 0", [](const auto& s) { s.consume("g", "a", {.count = 0}); }},
      {"count is", [](const auto& s) { s.consume("g", "a", {.count = kTooMany}); }},
      {"count is 0", [](const auto& s) { s.consume_own_pending("g", "a", {}, 0); }},
      {"count is 0", [](const auto& s) { s.read({}, {.count = 0}); }},
      {"count is 0", [](const auto& s) { s.replay({}, {}, 0); }},
      {"count is 0", [](const auto& s) { s.tail(0); }},
      {"page is 0", [](const auto& s) { s.replay_all({}, {}, 0); }},
      {"count is 0", [](const auto& s) { s.autoclaim("g", "a", {.count = 0}); }},
      {"count is", [](const auto& s) { s.autoclaim("g", "a", {.count = kTooMany / 2}); }},
      {"max_pages is 0", [](const auto& s) { s.autoclaim("g", "a", {.max_pages = 0}); }},
      {"count is 0", [](const auto& s) { s.pending_entries("g", {.count = 0}); }},
      {"count is", [](const auto& s) { s.full_info(kTooMany); }},
      {"delivery_count",
       [](const auto& s) { s.claim("g", "a", 0ms, kIds, {.delivery_count = kTooMany}); }},
      {"max_len", [](const auto& s) { s.trim(Trim::max_len(kTooMany)); }},
      {"limit", [](const auto& s) { s.trim(Trim::max_len(1).limit(kTooMany)); }},
      {"max_len",
       [](const auto& s) {
         s.add({{"f", "v"}}, {.trim = Trim::max_len(kTooMany)});
       }},
  });
}

TEST(EventStream, RefusesTimesThatCannotWork) {
  expect_refused({
      {"block is -1 ms", [](const auto& s) { s.consume("g", "a", {.block = -1ms}); }},
      {"block is -1 ms", [](const auto& s) { s.read({}, {.block = -1ms}); }},
      {"block is -1 ms", [](const auto& s) { s.follow(FollowStart::beginning()).next(-1ms); }},
      {"min_idle is -1 ms", [](const auto& s) { s.autoclaim("g", "a", {.min_idle = -1ms}); }},
      {"min_idle is -1 ms", [](const auto& s) { s.claim("g", "a", -1ms, kIds); }},
      {"min_idle is -1 ms", [](const auto& s) { s.claim_ids("g", "a", -1ms, kIds); }},
      {"idle is -1 ms", [](const auto& s) { s.claim("g", "a", 0ms, kIds, {.idle = -1ms}); }},
      {"since 1970",
       [](const auto& s) { s.claim_ids("g", "a", 0ms, kIds, {.idle = 24h * 365 * 200}); }},
      {"min_idle is -1 ms", [](const auto& s) { s.pending_entries("g", {.min_idle = -1ms}); }},
  });
}

TEST(EventStream, RefusesEntriesThatCannotBe) {
  expect_refused({
      {"without fields", [](const auto& s) { s.add(OwnedFields{}); }},
      {"0-0",
       [](const auto& s) {
         s.add({{"f", "v"}}, {.id = AddId::exactly({})});
       }},
      {"'type'",
       [](const auto& s) {
         s.produce("t", {{"type", "v"}});
       }},
      {"'ts_ms'",
       [](const auto& s) {
         s.produce("t", {{"f", "v"}, {"ts_ms", "v"}});
       }},
      {"exact id",
       [](const auto& s) {
         s.add_batch(std::vector<OwnedFields>{{{"f", "v"}}}, {.id = AddId::exactly({5, 0})});
       }},
  });
}

TEST(EventStream, RefusesAHandoverToItself) {
  expect_refused({{"same consumer", [](const auto& s) { s.handover_pending("g", "a", "a"); }}});
}

TEST(EventStream, NeedsNoServerToDoNothing) {
  const EventStream s = stream();
  EXPECT_EQ(s.ack("g", std::vector<StreamId>{}), 0U);
  EXPECT_EQ(s.ack("g", EntryBatch{}), 0U);
  EXPECT_EQ(s.erase(std::vector<StreamId>{}), 0U);
  EXPECT_TRUE(s.claim("g", "a", 0ms, std::vector<StreamId>{}).claimed.empty());
  EXPECT_TRUE(s.claim_ids("g", "a", 0ms, std::vector<StreamId>{}).empty());
  EXPECT_TRUE(s.add_batch({}).empty());
  EXPECT_TRUE(s.produce_batch({}).empty());
  EXPECT_EQ(s.pool().stats().created, 0U);
}

TEST(EventStream, KnowsThatNothingIsBeyondAllIds) {
  const EventStream s = stream();
  EXPECT_TRUE(s.replay(RangeStart::after(StreamId::max())).empty());
  EXPECT_TRUE(s.replay({}, RangeEnd::before(StreamId::min())).empty());
  EXPECT_TRUE(s.pending_entries("g", {.start = RangeStart::after(StreamId::max())}).empty());
  EXPECT_TRUE(s.consume_own_pending("g", "a", StreamId::max()).empty());
}

TEST(EventStream, GivesEachEntryOfABatchItsErrorWhereThereIsNoServer) {
  const std::vector<Event> events{{"t", {{"f", "v"}}}, {"t", {{"type", "v"}}}, {"t", {}}};
  const auto results = stream().produce_batch(events);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].error->code(), Error::Code::kConnect);
  EXPECT_EQ(results[0].error->outcome(), Outcome::kNotApplied);
  EXPECT_EQ(results[1].error->code(), Error::Code::kInvalidArgument);
  EXPECT_EQ(results[2].error->code(), Error::Code::kConnect);
}

TEST(EventStream, ReadsNothingOnceStopWasRequested) {
  std::stop_source source;
  source.request_stop();
  EXPECT_TRUE(stream().consume("g", "a", {.stop = source.get_token()}).empty());
  EXPECT_TRUE(stream().read({}, {.stop = source.get_token()}).empty());
}

}  // namespace
}  // namespace millrace
