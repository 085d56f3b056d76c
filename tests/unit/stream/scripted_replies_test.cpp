#include <millrace/event_stream.hpp>

#include "support/entries.hpp"
#include "support/scripted_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

/// What servers of other versions than those the tests run on say to EventStream, byte by byte: in
/// both protocols, and cut in two wherever that can be.
class ScriptedReplies : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    try {
      const ConnectionPool pool{{.resp_version = GetParam()}};
    } catch (const UnsupportedError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  /// The null that stands for a missing element, as this protocol writes it.
  static std::string null_bulk() { return GetParam() == 3 ? "_\r\n" : "$-1\r\n"; }
  static std::string null_array() { return GetParam() == 3 ? "_\r\n" : "*-1\r\n"; }

  static void set_up(Peer& peer) {
    if (GetParam() == 3) {
      peer.expect({"HELLO", "3"});
      peer.send("%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n");
    }
    peer.expect_client_id();
  }

  static ConnectionOptions options_for(const ScriptedServer& server) {
    ConnectionOptions options;
    options.unix_socket = server.path();
    options.resp_version = GetParam();
    options.connect_timeout = options.command_timeout = kGenerous;
    return options;
  }

  /// Has `ask(stream)` answered by `reply`, once for each place in which it can be cut.
  template <typename Ask>
  static void at_every_split(std::string_view command, const std::string& reply, Ask ask) {
    std::atomic<std::size_t> at{1};
    ScriptedServer server{[&](Peer& peer) {
                            set_up(peer);
                            for (auto words = peer.read(); !words.empty(); words = peer.read()) {
                              EXPECT_EQ(words.at(0), command);
                              peer.send_split(reply, at);
                            }
                          },
                          ScriptedServer::Kind::kUnix};
    const EventStream stream{ConnectionPool{options_for(server)}, "s"};
    for (; at < reply.size(); ++at) {
      SCOPED_TRACE("split at " + std::to_string(at));
      ask(stream);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_EQ(server.accepted(), 1U) << "no reply was an error, so all came on one connection";
  }
};

const std::string kOne = "*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
const std::string kThree = "*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$0\r\n\r\n";

// Redis 6.2: no slot for the ids that are gone, and a null among the entries for each.
TEST_P(ScriptedReplies, AnAutoclaimOfTwoSlotsWithNullsIsTheEntriesThatAreThere) {
  const std::string reply =
      "*2\r\n$3\r\n4-0\r\n*4\r\n" + null_bulk() + kOne + null_array() + kThree;
  at_every_split("XAUTOCLAIM", reply, [](const EventStream& stream) {
    const AutoclaimPage page = stream.autoclaim_page("g", "alice");
    EXPECT_EQ(text(page.claimed), "1-0[f=v] 3-0[f=]");
    EXPECT_TRUE(page.deleted_ids.empty());
    EXPECT_EQ(page.next_cursor, (StreamId{4, 0}));
  });
}

TEST_P(ScriptedReplies, AnAutoclaimOfTwoSlotsIsGoneThroughToItsEnd) {
  const std::string reply = "*2\r\n$3\r\n0-0\r\n*2\r\n" + kOne + null_bulk();
  at_every_split("XAUTOCLAIM", reply, [](const EventStream& stream) {
    const AutoclaimResult result = stream.autoclaim("g", "alice");
    EXPECT_EQ(text(result.claimed), "1-0[f=v]");
    EXPECT_TRUE(result.complete());
    EXPECT_FALSE(result.error.has_value());
  });
}

TEST_P(ScriptedReplies, AnAutoclaimOfThreeSlotsSaysWhatIsGone) {
  const std::string reply = "*3\r\n$3\r\n0-0\r\n*1\r\n" + kOne + "*2\r\n$3\r\n2-0\r\n$3\r\n3-0\r\n";
  at_every_split("XAUTOCLAIM", reply, [](const EventStream& stream) {
    const AutoclaimPage page = stream.autoclaim_page("g", "alice");
    EXPECT_EQ(text(page.claimed), "1-0[f=v]");
    EXPECT_THAT(page.deleted_ids, ElementsAre(StreamId{2, 0}, StreamId{3, 0}));
  });
}

// Redis 6.2: an entry that is gone is claimed all the same, and a null.
TEST_P(ScriptedReplies, AClaimOfWhatIsGoneLeavesItOut) {
  const std::string reply = "*3\r\n" + kOne + null_bulk() + kThree;
  at_every_split("XCLAIM", reply, [](const EventStream& stream) {
    const ClaimResult result =
        stream.claim("g", "alice", 0ms, {StreamId{1, 0}, StreamId{2, 0}, StreamId{3, 0}});
    EXPECT_EQ(text(result.claimed), "1-0[f=v] 3-0[f=]");
    EXPECT_THAT(result.missing, ElementsAre(StreamId{2, 0}));
  });
}

// Redis 8.8: XNACK gives an entry back to nobody.
TEST_P(ScriptedReplies, APendingEntryMayBelongToNobody) {
  const std::string reply =
      "*3\r\n*4\r\n$3\r\n1-0\r\n$0\r\n\r\n:-1\r\n:9223372036854775807\r\n"
      "*4\r\n$3\r\n2-0\r\n$0\r\n\r\n:-1\r\n:-1\r\n*4\r\n$3\r\n3-0\r\n$3\r\nbob\r\n:7\r\n:2\r\n";
  at_every_split("XPENDING", reply, [](const EventStream& stream) {
    const auto entries = stream.pending_entries("g");
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_EQ(entries[0].consumer, "");
    EXPECT_EQ(entries[0].idle, std::nullopt);
    EXPECT_EQ(entries[0].deliveries, std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(entries[1].deliveries, -1);
    EXPECT_EQ(entries[2].consumer, "bob");
    EXPECT_EQ(entries[2].idle, 7ms);
  });
}

TEST_P(ScriptedReplies, ReadsAreTheSameInBothShapes) {
  const std::string list = "$1\r\ns\r\n*2\r\n" + kOne + kThree;
  const std::string reply = GetParam() == 3 ? "%1\r\n" + list : "*1\r\n*2\r\n" + list;
  at_every_split("XREADGROUP", reply, [](const EventStream& stream) {
    EXPECT_EQ(text(stream.consume("g", "alice")), "1-0[f=v] 3-0[f=]");
  });
}

TEST_P(ScriptedReplies, ATrimThatFindsMoreAndMoreToRemoveEndsNevertheless) {
  std::atomic<std::size_t> rounds{0};
  ScriptedServer server{[&](Peer& peer) {
                          set_up(peer);
                          while (!peer.read().empty()) {
                            ++rounds;
                            peer.send(":1\r\n");
                          }
                        },
                        ScriptedServer::Kind::kUnix};
  const EventStream stream{ConnectionPool{options_for(server)}, "s"};
  EXPECT_EQ(stream.trim(Trim::max_len(0)), 10'000U);
  EXPECT_EQ(rounds, 10'000U);
}

INSTANTIATE_TEST_SUITE_P(, ScriptedReplies, ::testing::Values(2, 3), [](const auto& version) {
  return "RESP" + std::to_string(version.param);
});

}  // namespace
}  // namespace millrace::test
