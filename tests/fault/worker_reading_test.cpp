#include "support/monitor.hpp"
#include "worker_test.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <vector>

namespace millrace::test {
namespace {

class WorkerReading : public WorkerTest {};

Ids append_many(const EventStream& stream, std::size_t count) {
  const std::vector<OwnedFields> entries(count, OwnedFields{{"f", "v"}});
  Ids ids;
  for (const AddResult& result : stream.add_batch(entries)) ids.push_back(result.id.value());
  return ids;
}

TEST_F(WorkerReading, MakesTheStreamAndTheGroupThatAreMissingAtTheStart) {
  Journal journal;
  ConsumerWorker worker{stream(), options(), journal.handler()};
  worker.start();

  ASSERT_TRUE(worker.wait_ready(kGenerous));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
  const Ids ids = append_ids(1);
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(heard().recreated().empty()) << "nothing was lost, so nothing was made again";
}

TEST_F(WorkerReading, StartsAGroupItMakesWhereItWasTold) {
  append_ids(3);
  Journal journal;
  WorkerOptions at = options();
  at.group_start = GroupStart::after({2, 0});
  ConsumerWorker worker{stream(), at, journal.handler()};
  worker.start();

  EXPECT_TRUE(journal.wait_for(Ids{{3, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{3, 0}}));
}

TEST_F(WorkerReading, LeavesAGroupThatIsThereWhereItIs) {
  append_ids(3);
  raw()("XGROUP", "CREATE", "s", "g", "1-0");
  Journal journal;
  ConsumerWorker worker{stream(), options(), journal.handler()};
  worker.start();

  EXPECT_TRUE(journal.wait_for(Ids{{2, 0}, {3, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{2, 0}, {3, 0}}));
}

TEST_F(WorkerReading, ReadsTheSameOverRespThree) {
  ConnectionOptions resp3 = server().options();
  resp3.resp_version = 3;
  try {
    const ConnectionPool pool{resp3};
  } catch (const UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  }
  append_ids(6);
  orphan("alice", 2);
  raw()("XREADGROUP", "GROUP", "g", "bob", "COUNT", 2, "STREAMS", "s", ">");
  for (const StreamId id : Ids{{3, 0}, {4, 0}}) {
    raw()("XCLAIM", "s", "g", "bob", 0, id, "IDLE", 7'200'000, "JUSTID");
  }
  raw()("XDEL", "s", "2-0", "4-0");
  Journal journal;
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.block = 20ms;
  ConsumerWorker worker{stream(resp3), options, journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {3, 0}, {5, 0}, {6, 0}}));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_THAT(heard().deleted(), ::testing::UnorderedElementsAre(StreamId{2, 0}, StreamId{4, 0}));
  raw()("DEL", "s");
  EXPECT_TRUE(wait_until([&] { return !heard().recreated().empty(); }));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 6)));
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
}

TEST_F(WorkerReading, HandsOverWhatTheEntryIsAndWhoReadIt) {
  raw()("XADD", "s", "7-1", "f", "1", "f", "2", "", "\r\n");
  std::promise<std::string> said;
  ConsumerWorker worker{
      stream(), options(), [&](const Delivery& delivery) {
        said.set_value(fmt::format("{} {} {} {} {} {}", delivery.stream, delivery.group,
                                   delivery.consumer, delivery.attempt, delivery.reclaimed,
                                   text(delivery.entry)));
      }};
  worker.start();
  EXPECT_EQ(said.get_future().get(), "s g alice 1 false 7-1[f=1 f=2 =\r\n]");
}

TEST_F(WorkerReading, AcknowledgesWhatAHandlerThatReturnsNothingHasDone) {
  const Ids ids = append_ids(5);
  ConsumerWorker worker{stream(), options(), [](const Delivery&) {}};
  worker.start();

  EXPECT_TRUE(wait_until([&] { return heard().acknowledged().size() == 5; }));
  EXPECT_EQ(heard().acknowledged(), ids);
  EXPECT_EQ(heard().acknowledged_while_pending(), 5U);
  EXPECT_EQ(pending(), 0);
  EXPECT_EQ(worker.stats().succeeded, 5U);
  EXPECT_EQ(worker.stats().in_flight, 0U);
}

TEST_F(WorkerReading, HandlesAnEntryAtOnceThatComesWhileItsReadWaits) {
  Journal journal;
  WorkerOptions patient = options();
  patient.min_idle = 1h;
  patient.block = 10min;
  ConsumerWorker worker{stream(), patient, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());

  const Ids first = append_ids(1);
  EXPECT_TRUE(journal.wait_for(first));
  ASSERT_TRUE(blocked());
  const Ids second = append_ids(1, 1);
  EXPECT_TRUE(journal.wait_for(second));
  EXPECT_TRUE(nothing_is_pending()) << "acknowledgements do not wait for the read to end";
}

TEST_F(WorkerReading, LosesNothingOfALongBacklogWithDefaultOptions) {
  constexpr std::size_t kEntries = 20'000;
  const Ids ids = append_many(stream(), kEntries);
  ASSERT_EQ(ids.size(), kEntries);
  Journal journal;
  ConsumerWorker worker{
      stream(), {.group = "g", .group_start = GroupStart::beginning()}, journal.handler()};
  worker.start();

  EXPECT_TRUE(journal.wait_for(ids, 2 * kGenerous));
  EXPECT_EQ(journal.size(), kEntries);
  EXPECT_EQ(journal.ids(), ids) << "in the order of the stream";
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(raw()("XLEN", "s").integer, static_cast<std::int64_t>(kEntries));
}

TEST_F(WorkerReading, SharesTheWorkOfAGroupAndHandlesNothingTwiceInCalm) {
  constexpr std::size_t kEntries = 2'000;
  Journal journal;
  WorkerOptions bob = options();
  bob.consumer = "bob";
  ConsumerWorker first{stream(), options(), journal.handler()};
  ConsumerWorker second{stream(), bob, journal.handler()};
  first.start();
  second.start();
  ASSERT_TRUE(blocked(2));

  const Ids ids = append_many(stream(), kEntries);
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.size(), kEntries);
  std::map<std::string, std::size_t> share;
  for (const Journal::Call& call : journal.calls()) ++share[call.consumer];
  EXPECT_EQ(share.size(), 2U) << "both had their share";
}

TEST_F(WorkerReading, HandsItsEntriesToTheHandlerOneAtATime) {
  Journal journal;
  ConsumerWorker worker{stream(), options(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(append_ids(200)));
  EXPECT_EQ(journal.most_at_once(), 1U);
}

TEST_F(WorkerReading, AcknowledgesWhileTheNextHandlerStillRuns) {
  append_ids(2);
  Gate gate;
  Journal journal;
  WorkerOptions patient = options();
  patient.min_idle = 1h;
  patient.block = 10min;
  ConsumerWorker worker{stream(), patient, journal.handler([&](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{2, 0}) gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));

  EXPECT_TRUE(wait_until([&] { return pending() == 1; }));
  EXPECT_TRUE(wait_until([&] { return heard().acknowledged() == Ids{{1, 0}}; }));
  gate.open();
}

TEST_F(WorkerReading, ReadsNoMoreThanItsPrefetch) {
  append_ids(20);
  Gate gate;
  Journal journal;
  WorkerOptions few = options();
  few.prefetch = 4;
  ConsumerWorker worker{stream(), few, journal.handler([&](const Delivery&) {
                          gate.pass();
                          return Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_EQ(pending(), 4);
  EXPECT_EQ(worker.stats().in_flight, 4U);
  gate.open();
  EXPECT_TRUE(wait_until([&] { return heard().acknowledged().size() == 20; }));
}

TEST_F(WorkerReading, SendsAcknowledgementsBeforeTheReadThatTakesThemAlong) {
  raw()("XGROUP", "CREATE", "s", "g", "0", "MKSTREAM");
  WorkerOptions patient = options();
  patient.min_idle = 1h;
  patient.block = 10min;
  ConsumerWorker worker{stream(), patient, [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  Monitor monitor{server()};

  append_ids(1);
  monitor.next("\"XADD\"");
  // Whichever of the two comes first: behind a read that waits, the other would wait as well.
  EXPECT_NE(monitor.next("\"s\"").find("\"XACK\""), std::string::npos);
  EXPECT_NE(monitor.next("\"s\"").find("\"XREADGROUP\""), std::string::npos);
}

TEST_F(WorkerReading, MeetsNoTimeoutWhileNothingComesForLongerThanTheCommandTimeout) {
  Journal journal;
  WorkerOptions long_block = options();
  long_block.block = 1s;
  ConsumerWorker worker{stream(impatient(200ms)), long_block, journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));

  const auto reads = calls_of("xreadgroup");
  ASSERT_TRUE(wait_until([&] { return calls_of("xreadgroup") >= reads + 2; }));
  EXPECT_EQ(heard().connections_lost(), std::vector<std::string>{});
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
}

TEST_F(WorkerReading, MeetsNoTimeoutWherePeersWinWhatWakesItsRead) {
  constexpr std::size_t kWorkers = 4;
  Journal journal;
  std::vector<std::unique_ptr<ConsumerWorker>> workers;
  for (std::size_t i = 0; i < kWorkers; ++i) {
    WorkerOptions worker = options();
    worker.consumer = fmt::format("worker-{}", i);
    worker.block = 500ms;
    workers.push_back(
        std::make_unique<ConsumerWorker>(stream(impatient(300ms)), worker, journal.handler()));
    workers.back()->start();
  }
  ASSERT_TRUE(blocked(kWorkers));

  // Each entry wakes all, and is given to one. Newer servers start the wait of the others anew.
  for (std::uint64_t i = 0; i < 12; ++i) {
    EXPECT_TRUE(journal.wait_for(append_ids(1, i)));
    const auto until = std::chrono::steady_clock::now() + 200ms;
    ASSERT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() >= until; }));
  }
  EXPECT_EQ(heard().connections_lost(), std::vector<std::string>{});
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
  EXPECT_EQ(journal.repeated(), Ids{});
}

TEST_F(WorkerReading, KeepsItsConnectionsFromReadToRead) {
  Journal journal;
  WorkerOptions hasty = options();
  hasty.min_idle = 40ms;
  hasty.block = 1ms;
  ConsumerWorker worker{stream(), hasty, journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(1)));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(wait_until([&] { return calls_of("xinfo|stream") >= 3; })) << "both threads have one";

  const std::string made = info_field(raw(), "stats", "total_connections_received");
  const auto reads = calls_of("xreadgroup");
  ASSERT_TRUE(wait_until([&] { return calls_of("xreadgroup") >= reads + 1000; }));
  EXPECT_EQ(info_field(raw(), "stats", "total_connections_received"), made);
  EXPECT_EQ(worker.stats().reconnects, 0U);
}

/// How often the threads of this process but the one that asks have given up the processor.
std::uint64_t waits_of_other_threads() {
  std::uint64_t waits = 0;
  for (const auto& task : std::filesystem::directory_iterator{"/proc/self/task"}) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream status{task.path() / "status"};
    for (std::string line; std::getline(status, line);) {
      constexpr std::string_view kName = "voluntary_ctxt_switches:";
      if (line.starts_with(kName)) waits += std::stoull(line.substr(kName.size()));
    }
  }
  return waits;
}

TEST_F(WorkerReading, DoesNothingWhileNothingComes) {
  Journal journal;
  WorkerOptions patient = options();
  patient.min_idle = 1h;
  patient.block = 10min;
  ConsumerWorker worker{stream(), patient, journal.handler()};
  worker.start();
  ASSERT_TRUE(journal.wait_for(append_ids(1)));
  ASSERT_TRUE(nothing_is_pending());
  ASSERT_TRUE(blocked());
  ASSERT_TRUE(wait_until([&] { return calls_of("xinfo|stream") >= 3; })) << "both threads have one";

  const auto commands = [&] {
    return std::stoull(info_field(raw(), "stats", "total_commands_processed"));
  };
  const auto commands_before = commands();
  const auto waits_before = waits_of_other_threads();
  const auto until = std::chrono::steady_clock::now() + 1500ms;
  ASSERT_TRUE(wait_until([&] { return std::chrono::steady_clock::now() >= until; }));
  const auto waits = waits_of_other_threads() - waits_before;
  EXPECT_EQ(commands() - commands_before, 1U) << "the one that asked";
  EXPECT_LE(waits, 20U) << "two threads that do not so much as look at the time";
}

TEST_F(WorkerReading, CallsNobodyForReadsThatBringNoEntry) {
  Journal journal;
  WorkerOptions patient = options();
  patient.min_idle = 1h;
  patient.block = 10min;
  ConsumerWorker worker{stream(), patient, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());
  // Redis 7.0 wakes the read with an empty list; newer servers leave it.
  raw()("MULTI");
  raw()("XADD", "s", "1-0", "f", "v");
  raw()("XDEL", "s", "1-0");
  raw()("EXEC");
  ASSERT_TRUE(blocked());
  EXPECT_TRUE(journal.wait_for(append_ids(1, 1)));
  EXPECT_EQ(journal.ids(), (Ids{{2, 0}}));
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
}

TEST_F(WorkerReading, ReadsOnAfterSomebodyEndedItsRead) {
  Journal journal;
  WorkerOptions patient = options();
  patient.min_idle = 1h;
  patient.block = 10min;
  ConsumerWorker worker{stream(), patient, journal.handler()};
  worker.start();
  for (const std::string how : {"TIMEOUT", "ERROR"}) {
    ASSERT_TRUE(blocked());
    const std::string clients = raw()("CLIENT", "LIST").text;
    const auto line = clients.rfind("id=", clients.find("cmd=xreadgroup"));
    const auto reads = calls_of("xreadgroup");
    raw()("CLIENT", "UNBLOCK", std::stoull(clients.substr(line + 3)), how);
    ASSERT_TRUE(wait_until([&] { return calls_of("xreadgroup") > reads; })) << how;
  }
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
  EXPECT_EQ(worker.stats().reconnects, 0U) << "on the same connection";
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
}

}  // namespace
}  // namespace millrace::test
