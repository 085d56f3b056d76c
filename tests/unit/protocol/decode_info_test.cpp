#include "protocol/decode.hpp"

#include <millrace/error.hpp>

#include "resp.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <initializer_list>
#include <string>
#include <utility>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using TimePoint = std::chrono::system_clock::time_point;

enum class Protocol { kResp2, kResp3 };
constexpr Protocol kBoth[] = {Protocol::kResp2, Protocol::kResp3};

std::string text(std::string_view bytes) {
  return "$" + std::to_string(bytes.size()) + "\r\n" + std::string{bytes} + "\r\n";
}

std::string number(long long value) { return ":" + std::to_string(value) + "\r\n"; }

std::string null(Protocol protocol) { return protocol == Protocol::kResp2 ? "$-1\r\n" : "_\r\n"; }

std::string list(std::initializer_list<std::string> elements) {
  std::string wire = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) wire += element;
  return wire;
}

/// Names and values: a flat array in RESP2, a map in RESP3.
std::string map(Protocol protocol,
                std::initializer_list<std::pair<std::string_view, std::string>> fields) {
  std::string wire = protocol == Protocol::kResp2 ? "*" + std::to_string(2 * fields.size())
                                                  : "%" + std::to_string(fields.size());
  wire += "\r\n";
  for (const auto& [name, value] : fields) wire += text(name) + value;
  return wire;
}

const std::string kEntry = list({text("1-0"), list({text("f"), text("v")})});
const OwnedEntry kDecodedEntry{.id = {1, 0}, .fields = {{"f", "v"}}};

TEST(DecodeGroups, TakesTheBytesOfRedis86) {
  const auto groups = decode::groups(
      resp("*1\r\n*12\r\n$4\r\nname\r\n$1\r\ng\r\n$9\r\nconsumers\r\n:2\r\n$7\r\npending\r\n:2\r\n"
           "$17\r\nlast-delivered-id\r\n$3\r\n1-0\r\n$12\r\nentries-read\r\n$-1\r\n$3\r\nlag\r\n$-"
           "1\r\n")
          .root());
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].name, "g");
  EXPECT_EQ(groups[0].consumers, 2U);
  EXPECT_EQ(groups[0].pending, 2U);
  EXPECT_EQ(groups[0].last_delivered_id, (StreamId{1, 0}));
  EXPECT_EQ(groups[0].entries_read, std::nullopt);
  EXPECT_EQ(groups[0].lag, std::nullopt);
}

TEST(DecodeGroups, KeepsALagThatIsNegative) {
  for (const Protocol protocol : kBoth) {
    const auto groups = decode::groups(resp(list({map(protocol, {{"name", text("g")},
                                                                 {"entries-read", number(9'999)},
                                                                 {"lag", number(-9'998)}})}))
                                           .root());
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].entries_read, 9'999U);
    EXPECT_EQ(groups[0].lag, -9'998);
  }
}

TEST(DecodeGroups, TakesTheFewFieldsOfRedis62AndSkipsThoseOfTomorrow) {
  for (const Protocol protocol : kBoth) {
    const auto groups = decode::groups(
        resp(list({map(protocol, {{"tomorrow", list({map(protocol, {{"a", number(1)}})})},
                                  {"name", text("g")},
                                  {"nothing", null(protocol)}})}))
            .root());
    ASSERT_EQ(groups.size(), 1U);
    EXPECT_EQ(groups[0].name, "g");
    EXPECT_EQ(groups[0].entries_read, std::nullopt);
  }
  EXPECT_TRUE(decode::groups(resp("*0\r\n").root()).empty());
}

TEST(DecodeConsumers, TellsNeverFromJustNow) {
  for (const Protocol protocol : kBoth) {
    const auto consumers = decode::consumers(
        resp(list({map(protocol,
                       {{"name", text("old")}, {"pending", number(2)}, {"idle", number(50)}}),
                   map(protocol, {{"name", text("never")},
                                  {"pending", number(0)},
                                  {"idle", number(5)},
                                  {"inactive", number(-1)}}),
                   map(protocol, {{"name", text("now")},
                                  {"pending", number(1)},
                                  {"idle", number(5)},
                                  {"inactive", number(0)}})}))
            .root());
    ASSERT_EQ(consumers.size(), 3U);
    EXPECT_EQ(consumers[0].pending, 2U);
    EXPECT_EQ(consumers[0].idle, 50ms);
    EXPECT_EQ(consumers[0].inactive, std::nullopt);
    EXPECT_EQ(consumers[1].inactive, std::nullopt);
    EXPECT_EQ(consumers[2].inactive, 0ms);
  }
}

TEST(DecodeStreamInfo, HasEveryFieldOfRedis86) {
  for (const Protocol protocol : kBoth) {
    const StreamInfo info =
        decode::stream_info(resp(map(protocol, {{"length", number(3)},
                                                {"radix-tree-keys", number(1)},
                                                {"radix-tree-nodes", number(2)},
                                                {"last-generated-id", text("9-1")},
                                                {"max-deleted-entry-id", text("2-0")},
                                                {"entries-added", number(4)},
                                                {"recorded-first-entry-id", text("1-0")},
                                                {"idmp-duration", number(100)},
                                                {"idmp-maxsize", number(101)},
                                                {"pids-tracked", number(5)},
                                                {"iids-tracked", number(6)},
                                                {"iids-added", number(7)},
                                                {"iids-duplicates", number(8)},
                                                {"groups", number(2)},
                                                {"first-entry", kEntry},
                                                {"last-entry", null(protocol)}}))
                                .root());
    EXPECT_EQ(info.length, 3U);
    EXPECT_EQ(info.groups, 2U);
    EXPECT_EQ(info.last_generated_id, (StreamId{9, 1}));
    EXPECT_EQ(info.first_entry, kDecodedEntry);
    EXPECT_EQ(info.last_entry, std::nullopt);
    EXPECT_EQ(info.entries_added, 4U);
    EXPECT_EQ(info.max_deleted_id, (StreamId{2, 0}));
    EXPECT_EQ(info.recorded_first_id, (StreamId{1, 0}));
    EXPECT_EQ(info.radix_tree_keys, 1U);
    EXPECT_EQ(info.radix_tree_nodes, 2U);
    EXPECT_EQ(info.idmp_duration, 100s);
    EXPECT_EQ(info.idmp_maxsize, 101U);
    EXPECT_EQ(info.pids_tracked, 5U);
    EXPECT_EQ(info.iids_tracked, 6U);
    EXPECT_EQ(info.iids_added, 7U);
    EXPECT_EQ(info.iids_duplicates, 8U);
  }
}

TEST(DecodeStreamInfo, LeavesOutWhatTheServerDoesNotHave) {
  const StreamInfo info =
      decode::stream_info(resp(map(Protocol::kResp2, {{"length", number(0)}})).root());
  EXPECT_EQ(info.last_generated_id, StreamId{});
  EXPECT_EQ(info.entries_added, std::nullopt);
  EXPECT_EQ(info.max_deleted_id, std::nullopt);
  EXPECT_EQ(info.idmp_duration, std::nullopt);
}

std::string full_group(Protocol protocol) {
  const std::string consumer = map(
      protocol, {{"name", text("alice")},
                 {"seen-time", number(1'700'000'000'000)},
                 {"active-time", number(-1)},
                 {"pel-count", number(1)},
                 {"pending", list({list({text("1-0"), number(1'700'000'000'500), number(3)})})}});
  return map(
      protocol,
      {{"name", text("g")},
       {"last-delivered-id", text("1-0")},
       {"entries-read", number(1)},
       {"lag", null(protocol)},
       {"pel-count", number(2)},
       {"pending", list({list({text("1-0"), text("alice"), number(1'700'000'000'500), number(3)}),
                         list({text("2-0"), text(""), number(0), number(-1)})})},
       {"nacked-count", number(1)},
       {"consumers", list({consumer})}});
}

TEST(DecodeFullStreamInfo, HasGroupsConsumersAndTheirPendingEntries) {
  for (const Protocol protocol : kBoth) {
    const FullStreamInfo info =
        decode::full_stream_info(resp(map(protocol, {{"length", number(1)},
                                                     {"last-generated-id", text("1-0")},
                                                     {"entries", list({kEntry})},
                                                     {"groups", list({full_group(protocol)})}}))
                                     .root());
    EXPECT_EQ(info.length, 1U);
    EXPECT_EQ(info.entries, std::vector<OwnedEntry>{kDecodedEntry});
    ASSERT_EQ(info.groups.size(), 1U);
    const auto& group = info.groups[0];
    EXPECT_EQ(group.name, "g");
    EXPECT_EQ(group.last_delivered_id, (StreamId{1, 0}));
    EXPECT_EQ(group.entries_read, 1U);
    EXPECT_EQ(group.lag, std::nullopt);
    EXPECT_EQ(group.pending_count, 2U);
    EXPECT_EQ(group.nacked_count, 1U);
    ASSERT_EQ(group.pending.size(), 2U);
    EXPECT_EQ(group.pending[0].consumer, "alice");
    EXPECT_EQ(group.pending[0].delivered_at, TimePoint{1'700'000'000'500ms});
    EXPECT_EQ(group.pending[0].deliveries, 3);
    EXPECT_EQ(group.pending[1].consumer, "");
    EXPECT_EQ(group.pending[1].delivered_at, std::nullopt);
    ASSERT_EQ(group.consumers.size(), 1U);
    const auto& consumer = group.consumers[0];
    EXPECT_EQ(consumer.name, "alice");
    EXPECT_EQ(consumer.seen_at, TimePoint{1'700'000'000'000ms});
    EXPECT_EQ(consumer.active_at, std::nullopt);
    EXPECT_EQ(consumer.pending_count, 1U);
    ASSERT_EQ(consumer.pending.size(), 1U);
    EXPECT_EQ(consumer.pending[0].id, (StreamId{1, 0}));
    EXPECT_EQ(consumer.pending[0].consumer, "alice");
    EXPECT_EQ(consumer.pending[0].deliveries, 3);
  }
}

TEST(DecodeInfo, NamesTheFieldThatSurprises) {
  const auto said = [](std::string_view name, const std::string& value) -> std::string {
    try {
      decode::groups(resp(list({map(Protocol::kResp2, {{name, value}})})).root());
      return "nothing is thrown";
    } catch (const ProtocolError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(said("lag", text("x")), "lag is a string of 1 bytes, not an integer");
  EXPECT_EQ(said("pending", number(-1)), "pending is the integer -1, not a number of 0 or more");
  EXPECT_EQ(said("last-delivered-id", "_\r\n"), "last-delivered-id is null, not a stream id");
  EXPECT_EQ(said("name", number(1)), "name is the integer 1, not a string");
}

TEST(DecodeInfo, RefusesWhatIsNoMap) {
  for (const char* const wire : {"_\r\n", ":1\r\n", "+OK\r\n", "*1\r\n$6\r\nlength\r\n",
                                 "*2\r\n:1\r\n:1\r\n", "*2\r\n_\r\n:1\r\n"}) {
    EXPECT_THROW(decode::stream_info(resp(wire).root()), ProtocolError) << wire;
    EXPECT_THROW(decode::full_stream_info(resp(wire).root()), ProtocolError) << wire;
  }
  EXPECT_THROW(decode::groups(resp("*1\r\n:1\r\n").root()), ProtocolError);
  EXPECT_THROW(decode::consumers(resp(":1\r\n").root()), ProtocolError);
}

TEST(DecodeInfo, RefusesATimeBeyondTheClock) {
  const std::string consumer =
      map(Protocol::kResp2, {{"seen-time", number(9'223'372'036'854'775'807)}});
  const std::string group = map(Protocol::kResp2, {{"consumers", list({consumer})}});
  const std::string info = map(Protocol::kResp2, {{"groups", list({group})}});
  EXPECT_THROW(decode::full_stream_info(resp(info).root()), ProtocolError);
}

}  // namespace
}  // namespace millrace::detail
