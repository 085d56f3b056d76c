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
  std::string says;  ///< The whole message.
  std::function<void(const EventStream&)> call;
};

std::string empty(const std::string& name) { return "the " + name + " is empty: it needs a name"; }

/// A number that is wrong, and what the server can read.
std::string is(const std::string& option, std::uint64_t value, const std::string& rule) {
  return option + " is " + std::to_string(value) + ": it has to be " + rule;
}
const std::string kAnyCount = "from 1 to 9223372036854775807";
const std::string kAnyNumber = "at most 9223372036854775807";
const std::string kAnyAutoclaimCount = "from 1 to 576460752303423487";

std::string negative(const std::string& option) {
  return option + " is -1 ms: it has to be 0 ms or more";
}

void expect_refused(const std::vector<Case>& cases) {
  const EventStream s = stream();
  for (const Case& each : cases) {
    try {
      each.call(s);
      ADD_FAILURE() << "not refused: " << each.says;
    } catch (const InvalidArgument& error) {
      EXPECT_EQ(error.what(), each.says);
      EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
    } catch (const std::exception& error) {
      ADD_FAILURE() << each.says << " is not refused but tried: " << error.what();
    }
  }
}

TEST(EventStream, RefusesAStreamThatCannotWork) {
  const ConnectionPool pool{{.unix_socket = "/nonexistent/millrace"}};
  const auto refusal_of = [&pool](const std::string& key, StreamOptions options) -> std::string {
    try {
      const EventStream made{pool, key, options};
      return "accepted";
    } catch (const InvalidArgument& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal_of("", {}), empty("key of a stream"));
  EXPECT_EQ(refusal_of("s", {.claim_min_idle = 0ms}),
            "StreamOptions::claim_min_idle is 0 ms: it has to be more than 0 ms");
  EXPECT_EQ(refusal_of("s", {.retention = Trim::max_len(kTooMany)}),
            is("Trim::max_len", kTooMany, kAnyNumber));
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
      {empty("group"), [](const auto& s) { s.ensure_group("", GroupStart::now()); }},
      {empty("group"), [](const auto& s) { s.delete_group(""); }},
      {empty("group"), [](const auto& s) { s.set_group_position("", GroupStart::now()); }},
      {empty("group"), [](const auto& s) { s.create_consumer("", "a"); }},
      {empty("consumer"), [](const auto& s) { s.create_consumer("g", ""); }},
      {empty("group"), [](const auto& s) { s.consume("", "a"); }},
      {empty("consumer"), [](const auto& s) { s.consume("g", ""); }},
      {empty("group"), [](const auto& s) { s.consume_own_pending("", "a"); }},
      {empty("consumer"), [](const auto& s) { s.consume_own_pending("g", ""); }},
      {empty("group"), [](const auto& s) { s.ack("", kIds); }},
      {empty("group"), [](const auto& s) { s.ack("", std::vector<StreamId>{}); }},
      {empty("group"), [](const auto& s) { s.autoclaim_page("", "a"); }},
      {empty("consumer"), [](const auto& s) { s.autoclaim("g", ""); }},
      {empty("group"), [](const auto& s) { s.claim("", "a", 0ms, kIds); }},
      {empty("consumer"), [](const auto& s) { s.claim("g", "", 0ms, kIds); }},
      {empty("consumer"), [](const auto& s) { s.claim_ids("g", "", 0ms, kIds); }},
      {empty("group"), [](const auto& s) { s.handover_pending("", "a", "b"); }},
      {empty("consumer `from`"), [](const auto& s) { s.handover_pending("g", "", "b"); }},
      {empty("consumer `to`"), [](const auto& s) { s.handover_pending("g", "a", ""); }},
      {empty("group"), [](const auto& s) { s.remove_consumer("", "a"); }},
      {empty("consumer"), [](const auto& s) { s.remove_consumer("g", ""); }},
      {empty("group"), [](const auto& s) { s.consumers(""); }},
      {empty("group"), [](const auto& s) { s.pending(""); }},
      {empty("group"), [](const auto& s) { s.pending_entries(""); }},
      {empty("PendingQuery::consumer"),
       [](const auto& s) { s.pending_entries("g", {.consumer = ""}); }},
  });
}

TEST(EventStream, RefusesCountsThatCannotWork) {
  expect_refused({
      {is("ReadOptions::count", 0, kAnyCount),
       [](const auto& s) { s.consume("g", "a", {.count = 0}); }},
      {is("ReadOptions::count", kTooMany, kAnyCount),
       [](const auto& s) { s.consume("g", "a", {.count = kTooMany}); }},
      {is("count", 0, kAnyCount), [](const auto& s) { s.consume_own_pending("g", "a", {}, 0); }},
      {is("ReadOptions::count", 0, kAnyCount), [](const auto& s) { s.read({}, {.count = 0}); }},
      {is("count", 0, kAnyCount), [](const auto& s) { s.replay({}, {}, 0); }},
      {is("count", 0, kAnyCount), [](const auto& s) { s.tail(0); }},
      {is("page", 0, kAnyCount), [](const auto& s) { s.replay_all({}, {}, 0); }},
      {is("AutoclaimOptions::count", 0, kAnyAutoclaimCount),
       [](const auto& s) { s.autoclaim("g", "a", {.count = 0}); }},
      {is("AutoclaimOptions::count", kTooMany / 2, kAnyAutoclaimCount),
       [](const auto& s) { s.autoclaim("g", "a", {.count = kTooMany / 2}); }},
      {is("AutoclaimOptions::max_pages", 0, "1 or more"),
       [](const auto& s) { s.autoclaim("g", "a", {.max_pages = 0}); }},
      {is("PendingQuery::count", 0, kAnyCount),
       [](const auto& s) { s.pending_entries("g", {.count = 0}); }},
      {is("count", kTooMany, kAnyCount), [](const auto& s) { s.full_info(kTooMany); }},
      {is("ClaimOptions::delivery_count", kTooMany, kAnyNumber),
       [](const auto& s) { s.claim("g", "a", 0ms, kIds, {.delivery_count = kTooMany}); }},
      {is("Trim::max_len", kTooMany, kAnyNumber),
       [](const auto& s) { s.trim(Trim::max_len(kTooMany)); }},
      {is("Trim::limit", kTooMany, kAnyNumber),
       [](const auto& s) { s.trim(Trim::max_len(1).limit(kTooMany)); }},
      {is("Trim::max_len", kTooMany, kAnyNumber),
       [](const auto& s) {
         s.add({{"f", "v"}}, {.trim = Trim::max_len(kTooMany)});
       }},
  });
}

TEST(EventStream, RefusesTimesThatCannotWork) {
  expect_refused({
      {negative("block"), [](const auto& s) { s.consume("g", "a", {.block = -1ms}); }},
      {negative("block"), [](const auto& s) { s.read({}, {.block = -1ms}); }},
      {negative("block"), [](const auto& s) { s.follow(FollowStart::beginning()).next(-1ms); }},
      {negative("AutoclaimOptions::min_idle"),
       [](const auto& s) { s.autoclaim("g", "a", {.min_idle = -1ms}); }},
      {negative("min_idle"), [](const auto& s) { s.claim("g", "a", -1ms, kIds); }},
      {negative("min_idle"), [](const auto& s) { s.claim_ids("g", "a", -1ms, kIds); }},
      {negative("ClaimOptions::idle"),
       [](const auto& s) { s.claim("g", "a", 0ms, kIds, {.idle = -1ms}); }},
      {"ClaimOptions::idle is 6307200000000 ms: it has to be at most the time since 1970",
       [](const auto& s) { s.claim_ids("g", "a", 0ms, kIds, {.idle = 24h * 365 * 200}); }},
      {negative("PendingQuery::min_idle"),
       [](const auto& s) { s.pending_entries("g", {.min_idle = -1ms}); }},
  });
}

TEST(EventStream, RefusesEntriesThatCannotBe) {
  expect_refused({
      {"an entry without fields: it has to have at least one",
       [](const auto& s) { s.add(OwnedFields{}); }},
      {"AddOptions::id is 0-0: it has to be greater than that",
       [](const auto& s) {
         s.add({{"f", "v"}}, {.id = AddId::exactly({})});
       }},
      {"the payload has a field 'type': produce() adds that one itself, so it needs another name",
       [](const auto& s) {
         s.produce("t", {{"type", "v"}});
       }},
      {"the payload has a field 'ts_ms': produce() adds that one itself, so it needs another name",
       [](const auto& s) {
         s.produce("t", {{"f", "v"}, {"ts_ms", "v"}});
       }},
      {"AddOptions::id is an exact id: it can name one entry, so a batch has to go without",
       [](const auto& s) {
         s.add_batch(std::vector<OwnedFields>{{{"f", "v"}}}, {.id = AddId::exactly({5, 0})});
       }},
  });
}

TEST(EventStream, RefusesAHandoverToItself) {
  expect_refused({{"`from` and `to` of a hand-over are the same consumer: they must differ",
                   [](const auto& s) { s.handover_pending("g", "a", "a"); }}});
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
