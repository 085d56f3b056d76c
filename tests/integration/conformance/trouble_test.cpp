#include "conformance.hpp"
#include "support/stream_calls.hpp"

#include <filesystem>

namespace millrace::test {
namespace {

using Listen = ServerOptions::Listen;

class Trouble : public StreamTest {};
class BareTrouble : public BareConformanceTest {};

TEST_P(Trouble, AReplicaRefusesEveryWriteAndServesReads) {
  ThrowawayServer master{{.listen = Listen::kTcp, .args = {"--repl-diskless-sync-delay", "0"}}};
  ThrowawayServer replica{{.args = {"--replicaof", "127.0.0.1 " + std::to_string(master.port())}}};
  const EventStream source{ConnectionPool{options(master)}, "s"};
  const EventStream copy{ConnectionPool{options(replica)}, "s"};
  append(source, {{1, 0}, {2, 0}});
  source.ensure_group("g", GroupStart::beginning());
  source.consume("g", "a", kAllNow);
  source.ack("g", {StreamId{1, 0}});  // so there is something to trim
  source.create_consumer("g", "c");   // and to remove
  append(source, {{3, 0}});
  RawClient look{replica.options()};
  ASSERT_TRUE(wait_until([&] {
    return info_field(look, "replication", "master_link_status") == "up" && copy.length() == 3 &&
           copy.pending("g").count == 1 && copy.consumers("g").size() == 2;
  }));

  EXPECT_EQ(kWrites.size(), 22U) << "all that EventStream has";
  for (const auto& [name, call] : kWrites) {
    SCOPED_TRACE(name);
    EXPECT_EQ(thrown<ReadOnlyError>([&call = call, &copy] { call(copy); }).outcome(),
              Outcome::kNotApplied);
  }

  EXPECT_EQ(copy.replay().size(), 3U);
  EXPECT_EQ(copy.info().length, 3U);
  EXPECT_EQ(pending_text(copy, "g"), "2-0 a 1");
  EXPECT_EQ(copy.consumers("g").size(), 2U);

  auto read = std::async(std::launch::async, [&] { return copy.read({3, 0}, kLong); });
  ASSERT_TRUE(blocked(look, 1));
  append(source, {{4, 0}});
  EXPECT_EQ(read.get().ids(), (Ids{{4, 0}}));
}

TEST_P(Trouble, AServerThatIsLoadingSaysSoUntilItHasLoaded) {
  ThrowawayServer slow{{.ready_while_loading = true}};
  const EventStream stream{ConnectionPool{options(slow)}, "s"};
  append(stream, {{1, 0}});
  {
    RawClient fill{slow.options()};
    fill("EVAL", "for i = 1, 20000 do redis.call('SET', 'key' .. i, i) end", 0);
    ASSERT_EQ(fill("SAVE"), "+OK");
  }
  slow.stop();
  // Ten seconds, if nobody took the brake off.
  slow.start({"--key-load-delay", "500", "--loading-process-events-interval-bytes", "1024"});

  const auto error = thrown<LoadingError>([&] { stream.length(); });
  EXPECT_TRUE(error.retryable());
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);

  RawClient admin{slow.options()};
  ASSERT_EQ(admin("CONFIG", "SET", "key-load-delay", "0"), "+OK");
  ASSERT_TRUE(wait_until([&] { return info_field(admin, "persistence", "loading") == "0"; }));
  EXPECT_EQ(stream.length(), 1U);
}

TEST_P(Trouble, AServerThatCannotSaveRefusesReadsForGroupsAndAcknowledgements) {
  ThrowawayServer full;
  RawClient admin{full.options()};
  const EventStream stream{ConnectionPool{options(full)}, "s"};
  append(stream, {{1, 0}, {2, 0}});
  stream.ensure_group("g", GroupStart::beginning());
  stream.consume("g", "alice", {.count = 1, .block = 0ms});
  std::filesystem::create_directory(full.folder() / "dump.rdb");
  admin("CONFIG", "SET", "save", "3600 1");
  admin("BGSAVE");
  ASSERT_TRUE(wait_until(
      [&] { return info_field(admin, "persistence", "rdb_last_bgsave_status") == "err"; }));

  const auto error = thrown<ServerError>([&] { stream.add({{"f", "v"}}); });
  EXPECT_EQ(error.prefix(), "MISCONF");
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(thrown<ServerError>([&] { stream.consume("g", "alice", kAllNow); }).prefix(),
            "MISCONF");
  EXPECT_EQ(thrown<ServerError>([&] { stream.ack("g", {StreamId{1, 0}}); }).prefix(), "MISCONF");
  EXPECT_EQ(pending_text(stream, "g"), "1-0 alice 1");
}

/// Nodes of a cluster, as far as a slot that is on its way from one to the other needs them.
class BareCluster : public BareConformanceTest {
 protected:
  static ServerOptions node() {
    return {.listen = Listen::kTcp,
            .args = {"--cluster-enabled", "yes", "--cluster-port",
                     std::to_string(free_loopback_port())}};
  }
  static std::string bus_port(const ThrowawayServer& of) {
    RawClient ask{of.options()};
    const std::string self = ask("CLUSTER", "NODES").text;  // id ip:port@bus …
    const std::size_t at = self.find('@') + 1;
    return self.substr(at, self.find_first_of(" ,", at) - at);
  }
  [[nodiscard]] static bool serves_all_slots(RawClient& raw) {
    return wait_until(
        [&] { return raw("CLUSTER", "INFO").text.find("cluster_state:ok") != std::string::npos; });
  }
};

TEST_P(BareCluster, KeysOfTwoSlotsCannotBeReadTogether) {
  ThrowawayServer node_a{node()};
  RawClient a{node_a.options(), GetParam()};
  ASSERT_EQ(a("CLUSTER", "ADDSLOTSRANGE", 0, 16383), "+OK");
  ASSERT_TRUE(serves_all_slots(a));
  EXPECT_EQ(a("XREAD", "STREAMS", "{1}s", "{2}s", "0", "0"), "-CROSSSLOT …");
  EXPECT_EQ(a("XREAD", "STREAMS", "{1}s", "{1}t", "0", "0"), null_array());
}

TEST_P(BareCluster, KeysOfASlotThatIsMovingCannotBeReadTogetherForNow) {
  ThrowawayServer node_a{node()};
  ThrowawayServer node_b{node()};
  RawClient a{node_a.options(), GetParam()};
  RawClient b{node_b.options()};
  const std::string id_b = b("CLUSTER", "MYID").text;
  ASSERT_EQ(a("CLUSTER", "ADDSLOTSRANGE", 0, 16383), "+OK");
  ASSERT_EQ(a("CLUSTER", "MEET", "127.0.0.1", node_b.port(), bus_port(node_b)), "+OK");
  ASSERT_TRUE(
      wait_until([&] { return a("CLUSTER", "NODES").text.find(id_b) != std::string::npos; }));
  ASSERT_TRUE(serves_all_slots(a));
  a("XADD", "{1}s", "1-0", "f", "v");

  const RawReply slot = a("CLUSTER", "KEYSLOT", "{1}s");
  ASSERT_EQ(a("CLUSTER", "SETSLOT", slot.integer, "MIGRATING", id_b), "+OK");

  EXPECT_EQ(a("XREAD", "STREAMS", "{1}s", "{1}t", "0", "0"), "-TRYAGAIN …");
}

TEST_P(Trouble, AClusterThatServesNoSlotIsAClusterError) {
  ThrowawayServer node{{.listen = Listen::kTcp,
                        .args = {"--cluster-enabled", "yes", "--cluster-port",
                                 std::to_string(free_loopback_port())}}};
  const EventStream stream{ConnectionPool{options(node)}, "s"};
  const auto error = thrown<ClusterError>([&] { stream.length(); });
  EXPECT_EQ(error.prefix(), "CLUSTERDOWN");
  EXPECT_TRUE(error.retryable());
}

TEST_P(BareTrouble, AGroupThatIsMissingFailsItsOwnPartOfATransaction) {
  given_three_entries();
  bare("MULTI");
  bare("XREADGROUP", "GROUP", "nogroup", "alice", "STREAMS", "s", ">");
  bare("XLEN", "s");
  const RawReply results = bare("EXEC");
  ASSERT_EQ(results.elements.size(), 2U);
  EXPECT_EQ(results[0], "-NOGROUP …");
  EXPECT_EQ(results[1], ":3");
}

MILLRACE_ON_BOTH_PROTOCOLS(Trouble);
MILLRACE_ON_BOTH_PROTOCOLS(BareTrouble);
MILLRACE_ON_BOTH_PROTOCOLS(BareCluster);

}  // namespace
}  // namespace millrace::test
