/// Calls of EventStream and ConsumerWorker with their arguments written in every way that users
/// write them, against a server.

#include <millrace/consumer_worker.hpp>
#include <millrace/event_stream.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/server_test.hpp"
#include "support/wait_until.hpp"

namespace millrace {
namespace {

using namespace std::chrono_literals;

class ServerCalls : public test::ServerTest {
 protected:
  /// A stream with the entries 1-0, 2-0 and 3-0, each with one field i.
  void SetUp() override {
    ServerTest::SetUp();
    for (const auto* i : {"1", "2", "3"}) {
      stream.add({{"i", i}}, {.id = AddId::exactly(StreamId::parse(i))});
    }
  }

  /// A group to which all three entries are delivered.
  EntryBatch deliver(const char* group) const {
    stream.ensure_group(group, GroupStart::beginning());
    return stream.consume(group, "a");
  }

  ConnectionPool pool{server().options()};
  EventStream stream{pool, "k"};
  const StreamId a{1, 0}, b{2, 0};
};

TEST_F(ServerCalls, AppendAList) {
  const EventStream fresh{pool, "fresh"};
  fresh.add({{"a", "b"}});
  fresh.add({{"a", "1"}, {"b", "2"}});
  fresh.add({{{"a", "b"}, {"c", "d"}}});

  const auto entries = fresh.replay();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].to_owned().fields, (OwnedFields{{"a", "b"}}));
  EXPECT_EQ(entries[1].to_owned().fields, (OwnedFields{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(entries[2].to_owned().fields, (OwnedFields{{"a", "b"}, {"c", "d"}}));
}

TEST_F(ServerCalls, AppendARangeOrAnEntry) {
  const std::map<std::string, std::string> map{{"a", "1"}, {"b", "2"}};
  const std::pair<std::string, std::string> p{"a", "1"}, q{"b", "2"};

  const EventStream fresh{pool, "fresh"};
  fresh.add(map);
  fresh.add(std::map<std::string, std::string>{{"a", "1"}, {"b", "2"}});
  fresh.add({p, q});
  const auto batch = fresh.replay();
  fresh.add(batch[0]);
  fresh.add(batch[0].to_owned().fields);

  ASSERT_EQ(fresh.length(), 5U);
  for (const auto& entry : fresh.replay()) {
    EXPECT_EQ(entry.to_owned().fields, (OwnedFields{{"a", "1"}, {"b", "2"}}));
  }
}

TEST_F(ServerCalls, AppendMany) {
  const EventStream fresh{pool, "fresh"};
  const auto added =
      fresh.add_batch(std::vector<OwnedFields>{{{"a", "1"}}, {{"a", "2"}, {"b", "3"}}});
  ASSERT_EQ(added.size(), 2U);

  std::vector<Event> events;
  events.push_back({"order.placed", {{"id", "1"}}});
  const auto produced = fresh.produce_batch(events);
  ASSERT_EQ(produced.size(), 1U);

  const auto entries = fresh.replay();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1].at("b"), "3");
  EXPECT_EQ(entries[2].at("type"), "order.placed");
  EXPECT_EQ(entries[2].id(), produced[0].id);
}

TEST_F(ServerCalls, LoopOverWhatACallReturns) {
  std::string seen;
  for (const auto& entry : stream.replay()) seen += entry.at("i");
  EXPECT_EQ(seen, "123");

  deliver("g");
  ASSERT_TRUE(
      test::wait_until([&] { return stream.pending_entries("g", {.min_idle = 1ms}).size() == 3; }));
  seen.clear();
  for (auto& e : stream.autoclaim("g", "b", {.min_idle = 1ms}).claimed) seen += e.at("i");
  EXPECT_EQ(seen, "123");
}

TEST_F(ServerCalls, AcknowledgeAList) {
  const auto id = a;
  deliver("g");
  EXPECT_EQ(stream.ack("g", {}), 0U);
  EXPECT_EQ(stream.ack("g", {id}), 1U);
  EXPECT_EQ(stream.ack("g", {{1, 0}, {2, 0}}), 1U);
}

TEST_F(ServerCalls, AcknowledgeABatch) {
  const auto batch = deliver("g");
  EXPECT_EQ(stream.ack("g", batch), 3U);
}

TEST_F(ServerCalls, AcknowledgeIdsOfAContainer) {
  deliver("g");
  EXPECT_EQ(stream.ack("g", std::vector<StreamId>{a}), 1U);
  EXPECT_EQ(stream.ack("g", std::array<StreamId, 1>{b}), 1U);
  const std::vector<StreamId> ids{{3, 0}};
  EXPECT_EQ(stream.ack("g", ids), 1U);
}

TEST_F(ServerCalls, ClaimAndEraseTakeTheSame) {
  const auto batch = deliver("g");
  EXPECT_EQ(stream.claim("g", "b", 0ms, {a, b}).claimed.size(), 2U);
  EXPECT_EQ(stream.claim("g", "b", 0ms, batch).claimed.size(), 3U);
  EXPECT_EQ(stream.claim_ids("g", "b", 0ms, batch.ids()).size(), 3U);
  EXPECT_EQ(stream.erase({a}), 1U);
  EXPECT_EQ(stream.erase(batch), 2U);
}

TEST_F(ServerCalls, ReadWithSomeOptions) {
  stream.ensure_group("g", GroupStart::beginning());
  EXPECT_EQ(stream.consume("g", "a", {.count = 1, .block = 10ms}).size(), 1U);
  EXPECT_EQ(stream.autoclaim("g", "a", {.min_idle = 1s, .count = 10}).claimed.size(), 0U);
}

TEST_F(ServerCalls, ReplayARange) {
  EXPECT_EQ(stream.replay(a, b, 5).size(), 2U);
  EXPECT_EQ(stream.replay(RangeStart::after(a)).size(), 2U);
  EXPECT_EQ(stream.replay({}, b).size(), 2U);
  EXPECT_EQ(stream.replay({}, RangeEnd::before(b)).size(), 1U);
}

TEST_F(ServerCalls, AWorkerOfTemporariesWorks) {
  std::atomic<int> handled = 0;
  ConsumerWorker worker{EventStream{ConnectionPool{server().options()}, "k"},
                        WorkerOptions{.group = "g", .group_start = GroupStart::beginning()},
                        [&handled](const Delivery&) { ++handled; }};
  worker.start();
  EXPECT_TRUE(test::wait_until([&] { return handled == 3; }));
  worker.stop();
}

TEST_F(ServerCalls, AHandlerMayUseItsOwnCopyOfTheStream) {
  const EventStream copies{pool, "copies"};
  ConsumerWorker worker{stream,
                        {.group = "g", .group_start = GroupStart::beginning()},
                        [copies](const Delivery& delivery) { copies.add(delivery.entry); }};
  worker.start();
  EXPECT_TRUE(test::wait_until([&] { return copies.length() == 3; }));
  worker.stop();
}

}  // namespace
}  // namespace millrace
