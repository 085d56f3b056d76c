#include "worker_test.hpp"

#include <atomic>
#include <fstream>
#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A worker goes through what a server goes through, and loses nothing.
class WorkerServerFault : public WorkerTest {
 protected:
  using WorkerTest::WorkerTest;

  WorkerOptions quick() {
    WorkerOptions quick = options();
    quick.block = 100ms;
    quick.reconnect_min = 1ms;
    quick.reconnect_max = 50ms;
    return quick;
  }

  /// Appends `<from>-0` to `<to>-0`, each until the server says that it has it.
  Ids append_whatever_happens(std::uint64_t from, std::uint64_t to) {
    const EventStream through = stream(impatient());
    Ids ids;
    for (std::uint64_t i = from; i <= to; ++i) {
      ids.push_back({i, 0});
      while (!is_appended(through, ids.back())) {
      }
    }
    return ids;
  }

  [[nodiscard]] static bool degraded(const ConsumerWorker& worker) {
    return wait_until([&] { return worker.state() == WorkerState::kDegraded; });
  }
  [[nodiscard]] static bool runs(const ConsumerWorker& worker) {
    return wait_until([&] { return worker.state() == WorkerState::kRunning; });
  }

  /// True once a line of the log says this.
  [[nodiscard]] bool says(std::string_view words) {
    return wait_until([&] { return heard().text().find(words) != std::string::npos; });
  }

 private:
  static bool is_appended(const EventStream& stream, StreamId id) {
    try {
      stream.add({{"f", "v"}}, {.id = AddId::exactly(id)});
      return true;
    } catch (const Error&) {
    }
    try {
      return !stream.replay(id, id).empty();
    } catch (const Error&) {
      return false;
    }
  }
};

class WorkerDurableServer : public WorkerServerFault {
 protected:
  WorkerDurableServer()
      : WorkerServerFault{{.args = {"--appendonly", "yes", "--appendfsync", "always"}}} {}

  template <typename Fault>
  void loses_nothing_through(Fault&& fault) {
    Journal journal;
    ConsumerWorker worker{stream(impatient()), quick(), journal.handler()};
    worker.start();
    ASSERT_TRUE(runs(worker));

    Ids ids;
    std::thread producer{[&] { ids = append_whatever_happens(1, 400); }};
    for (std::size_t i = 1; i <= 3; ++i) {
      const bool moved = journal.wait_for_calls(i * 80);
      fault();
      if (!moved) break;
    }
    producer.join();
    forget_raw();
    EXPECT_TRUE(journal.wait_for(ids)) << journal.missing(ids).size() << " are missing";
    EXPECT_TRUE(nothing_is_pending());
    EXPECT_EQ(journal.overlapping(), std::set<StreamId>{});
    EXPECT_GT(worker.stats().reconnects, 0U);
    EXPECT_LE(heard().lines().size(), 20U) << heard().text();
  }
};

TEST_F(WorkerDurableServer, MayBeStoppedAndStartedAgain) {
  loses_nothing_through([&] { server().restart(); });
}

TEST_F(WorkerDurableServer, MayDieAndComeBack) {
  loses_nothing_through([&] {
    server().kill();
    server().start();
  });
}

TEST_F(WorkerServerFault, AServerThatComesBackEmptyIsReadFromItsBeginning) {
  Journal journal;
  ConsumerWorker worker{stream(impatient()), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(5, 100)));
  ASSERT_TRUE(nothing_is_pending());
  for (std::uint64_t i = 0; i < 3; ++i) {
    server().kill();
    forget_raw();
    ASSERT_TRUE(degraded(worker));
    server().start();
    EXPECT_TRUE(journal.wait_for(append_ids(5, 10 * i))) << i;
  }
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerServerFault, AKeeperThatIsRefusedByAReplicaLooksForTheMaster) {
  append_ids(1);
  Gate gate;
  WorkerOptions renewing = options();
  renewing.min_idle = 1h;  // no lease runs out, and no reply is late
  renewing.lease_renew_every = 50ms;
  renewing.reap_every = 0ms;
  renewing.reconnect_min = 5ms;
  renewing.reconnect_max = 20ms;
  ConsumerWorker worker{stream(), renewing, [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  ASSERT_TRUE(wait_until([&] { return calls_of("xclaim") > 0; })) << "a lease was renewed";

  const auto made = [&] {
    return std::stoull(info_field(raw(), "stats", "total_connections_received"));
  };
  const auto before = made();
  raw()("REPLICAOF", "127.0.0.1", 1);
  EXPECT_TRUE(wait_until([&] { return made() >= before + 10; })) << "one for each refusal";
  EXPECT_TRUE(says("READONLY")) << heard().text();
  raw()("REPLICAOF", "NO", "ONE");
  gate.open();
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerServerFault, ManySecondsWithoutAServerAreLivedThrough) {
  Journal journal;
  ConsumerWorker worker{stream(impatient()),
                        {.group = "g",
                         .consumer = "alice",
                         .group_start = GroupStart::beginning(),
                         .observer = options().observer},
                        journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(5)));
  ASSERT_TRUE(nothing_is_pending());
  server().stop();
  forget_raw();
  ASSERT_TRUE(degraded(worker));
  const auto back = Clock::now() + 10s;
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= back; }));
  EXPECT_EQ(worker.state(), WorkerState::kDegraded);
  EXPECT_LE(heard().lines().size(), 10U) << heard().text();

  server().start();
  EXPECT_TRUE(journal.wait_for(append_ids(5, 5)));
  EXPECT_TRUE(runs(worker));
  EXPECT_LE(heard().lines().size(), 10U) << heard().text();
}

TEST_F(WorkerServerFault, AStartWithoutAServerWaitsForOne) {
  server().stop();
  Journal journal;
  ConsumerWorker worker{stream(impatient()), quick(), journal.handler()};
  worker.start();
  EXPECT_FALSE(worker.wait_ready(50ms));
  ASSERT_TRUE(degraded(worker));
  server().start();
  EXPECT_TRUE(worker.wait_ready(kGenerous));
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
}

TEST_F(WorkerServerFault, AServerThatStillLoadsIsWaitedFor) {
  ThrowawayServer slow{{.ready_while_loading = true}};
  RawClient raw{slow.options()};
  for (int i = 0; i < 400; ++i) raw("SET", "key" + std::to_string(i), std::string(1024, 'x'));
  raw("XADD", "s", "1-0", "f", "v");
  raw("SAVE");
  slow.stop();
  // Two seconds or so, in which every command is answered by LOADING.
  slow.start({"--key-load-delay", "5000", "--loading-process-events-interval-bytes", "1024"});
  Journal journal;
  ConsumerWorker worker{stream(slow.options()), quick(), journal.handler()};
  worker.start();
  EXPECT_TRUE(degraded(worker));
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_THAT(heard().text(), ::testing::HasSubstr("LOADING"));
  EXPECT_LE(heard().lines().size(), 6U) << heard().text();
}

TEST_F(WorkerServerFault, AServerThatCannotSaveKeepsItsEntriesUntilItCan) {
  Journal journal;
  ConsumerWorker worker{stream(), quick(), journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{2, 0}) {
                            // From here on every write is refused, XACK and XREADGROUP among them.
                            RawClient mine{server().options()};
                            mine("CONFIG", "SET", "save", "3600 1");
                            std::filesystem::create_directory(server().folder() / "dump.rdb");
                            mine("BGSAVE");
                            static_cast<void>(wait_until(
                                [&] { return mine("SET", "x", "y").text.starts_with("MISCONF"); }));
                          }
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(runs(worker));
  append_ids(2);
  ASSERT_TRUE(degraded(worker));
  EXPECT_TRUE(says("MISCONF"));
  EXPECT_GE(pending(), 1) << "2-0 cannot be acknowledged";
  EXPECT_GE(worker.stats().in_flight, 1U);

  std::filesystem::remove(server().folder() / "dump.rdb");
  raw()("CONFIG", "SET", "save", "");
  raw()("CONFIG", "SET", "stop-writes-on-bgsave-error", "no");
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_TRUE(journal.wait_for(append_ids(1, 2)));
  EXPECT_EQ(journal.repeated(), Ids{}) << "its success was kept";
  EXPECT_EQ(worker.stats().leases_lost, 0U);
}

TEST_F(WorkerServerFault, AServerThatBecomesAReplicaIsReadAgainWhenItIsAMaster) {
  Journal journal;
  ConsumerWorker worker{stream(), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(3)));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(blocked());

  raw()("REPLICAOF", "127.0.0.1", 1);  // where nobody listens
  ASSERT_TRUE(degraded(worker));
  EXPECT_TRUE(says("READONLY"));
  raw()("REPLICAOF", "NO", "ONE");
  EXPECT_TRUE(journal.wait_for(append_ids(3, 3)));
  EXPECT_TRUE(runs(worker));
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_LE(heard().lines().size(), 10U) << heard().text();
}

TEST_F(WorkerServerFault, AServerThatIsBusyWithAScriptIsWaitedFor) {
  raw()("CONFIG", "SET", "lua-time-limit", 20);
  Journal journal;
  ConsumerWorker worker{stream(impatient(300ms)), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(runs(worker));
  RawClient busy{server().options()};
  busy.send("EVAL", "while true do end", 0);
  ASSERT_TRUE(degraded(worker));
  EXPECT_TRUE(says("BUSY"));
  raw()("SCRIPT", "KILL");
  ASSERT_TRUE(wait_until([&] { return raw()("PING") == "+PONG"; }));
  EXPECT_TRUE(journal.wait_for(append_ids(3)));
  EXPECT_TRUE(runs(worker));
}

TEST_F(WorkerServerFault, AServerThatIsOutOfMemoryIsStillDrained) {
  const Ids ids = append_ids(100);
  orphan("bob", 20);
  for (std::size_t i = 0; i < 20; ++i) {
    raw()("XCLAIM", "s", "g", "bob", 0, ids[i], "IDLE", 7'200'000, "JUSTID");
  }
  raw()("CONFIG", "SET", "maxmemory", 1);
  Journal journal;
  WorkerOptions reaper = quick();
  reaper.min_idle = 1h;
  ConsumerWorker worker{stream(), reaper, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(ids)) << "reading, taking over and acknowledging need no memory";
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerServerFault, AServerThatDoesNotLetItMakeGroupsIsReadFromWhereThereIsOne) {
  raw()("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
  raw()("ACL", "SETUSER", "default", "-xgroup");
  Journal journal;
  ConsumerWorker worker{stream(), quick(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
}

TEST_F(WorkerServerFault, AServerThatAllowsTooLittleIsAskedSlowlyAndNamedTheCommand) {
  Journal journal;
  ConsumerWorker worker{stream(), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(1)));
  ASSERT_TRUE(nothing_is_pending());
  raw()("ACL", "SETUSER", "default", "-xreadgroup");
  ASSERT_TRUE(degraded(worker));
  EXPECT_TRUE(says("XREADGROUP"));
  const auto refusals = [&] {
    const std::string info = raw()("INFO", "commandstats").text;
    const auto at = info.find("rejected_calls=", info.find("cmdstat_xreadgroup:"));
    return std::stoull(info.substr(at + 15));
  };
  const auto before = refusals();
  const auto until = Clock::now() + 2s;
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= until; }));
  EXPECT_LE(refusals() - before, 4U) << "two a second at most";

  raw()("ACL", "SETUSER", "default", "+@all");
  EXPECT_TRUE(journal.wait_for(append_ids(1, 1)));
  EXPECT_TRUE(runs(worker));
}

TEST_F(WorkerServerFault, AServerThatChangesItsPasswordIsAskedSlowly) {
  std::atomic<bool> knows{false};
  ConnectionOptions options = impatient();
  options.credentials = [&]() -> ConnectionOptions::Credentials {
    return {.password = knows ? "new" : "old"};
  };
  raw()("CONFIG", "SET", "requirepass", "old");
  Journal journal;
  ConsumerWorker worker{stream(options), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(runs(worker));
  raw()("CONFIG", "SET", "requirepass", "new");
  kill_clients();
  ASSERT_TRUE(degraded(worker));
  EXPECT_TRUE(says("WRONGPASS"));
  knows = true;
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
}

TEST_F(WorkerServerFault, AServerWithoutRoomForAnotherClientIsAskedAgain) {
  raw()("CONFIG", "SET", "maxclients", 1);
  Journal journal;
  ConsumerWorker worker{stream(), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(degraded(worker));
  EXPECT_TRUE(says("max number of clients"));
  raw()("CONFIG", "SET", "maxclients", 100);
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
}

/// A server that does not know one of the commands.
class WorkerOldServer : public WorkerTest, public ::testing::WithParamInterface<const char*> {
 protected:
  WorkerOldServer() : WorkerTest{{.args = {"--rename-command", GetParam(), "gone"}}} {}
};

TEST_P(WorkerOldServer, EndsTheWorkerWhichSaysSo) {
  Journal journal;
  ConsumerWorker worker{stream(), options(), journal.handler()};
  worker.start();
  EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kFailed; })) << heard().text();
  EXPECT_THAT(worker.failure().value().what(), ::testing::HasSubstr("this server is too old"));
}

INSTANTIATE_TEST_SUITE_P(Without, WorkerOldServer,
                         ::testing::Values("XREADGROUP", "XPENDING", "XGROUP"),
                         [](const auto& command) { return std::string{command.param}; });

}  // namespace
}  // namespace millrace::test
