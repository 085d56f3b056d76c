#include <millrace/producer.hpp>

#include "producer_fixture.hpp"
#include "support/gate.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>
#include <functional>
#include <memory>
#include <utility>

namespace millrace::test {
namespace {

using Kind = ScriptedServer::Kind;

class ProducerTrouble : public ProducerTest {
 protected:
  /// Whether a child process finds that `holds`.
  static bool holds_in_a_child(const std::function<bool()>& holds) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool result = false;
      try {
        result = holds();
      } catch (...) {
        result = false;
      }
      ::_exit(result ? 0 : 1);
    }
    int status = -1;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  template <typename Call>
  static bool is_unsupported(Call call) {
    try {
      call();
    } catch (const UnsupportedError&) {
      return true;
    }
    return false;
  }
};

TEST_F(ProducerTrouble, SendsAgainInOrderWhatTheServerRefusedForNow) {
  ScriptedServer server{[](Peer& peer) {
                          set_up(peer);
                          expect_entries(peer, {1, 2, 3});
                          peer.send("-LOADING wait\r\n-LOADING wait\r\n-LOADING wait\r\n");
                          expect_entries(peer, {1});  // alone, to see whether it is taken
                          peer.send("-LOADING wait\r\n");
                          expect_entries(peer, {1});
                          append(peer, {1});
                          expect_entries(peer, {2, 3});
                          append(peer, {2, 3});
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), three_at_once()};
  open_with(producer);
  auto first = send(producer, 1);
  auto second = send(producer, 2);
  auto third = send(producer, 3);
  EXPECT_EQ(first.get(), id(1));
  EXPECT_EQ(second.get(), id(2));
  EXPECT_EQ(third.get(), id(3));
  EXPECT_EQ(producer.stats().resent, 4U);
  EXPECT_EQ(producer.stats().reconnects, 0U);
}

TEST_F(ProducerTrouble, DoesNotSendARefusedEntryAgainAfterALaterOneWasAppended) {
  ScriptedServer server{[](Peer& peer) {
                          set_up(peer);
                          expect_entries(peer, {1, 2, 3});
                          peer.send("-LOADING wait\r\n");
                          append(peer, {2});
                          peer.send("-LOADING wait\r\n");
                          expect_entries(peer, {3});
                          append(peer, {3});
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), three_at_once()};
  open_with(producer);
  auto first = send(producer, 1);
  auto second = send(producer, 2);
  auto third = send(producer, 3);
  EXPECT_THROW(first.get(), LoadingError);
  EXPECT_EQ(second.get(), id(2));
  EXPECT_EQ(third.get(), id(3));
}

TEST_F(ProducerTrouble, DoesNotSendARefusedEntryAgainWhenALaterOneMayHaveBeenAppended) {
  ScriptedServer server{[](Peer& peer) {
                          if (peer.number() > 0) return set_up_and_serve(peer);
                          set_up(peer);
                          expect_entries(peer, {1, 2, 3});
                          peer.send("-LOADING wait\r\n");
                          peer.close();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), three_at_once()};
  open_with(producer);
  auto first = send(producer, 1);
  auto second = send(producer, 2);
  auto third = send(producer, 3);
  EXPECT_THROW(first.get(), LoadingError);
  EXPECT_EQ(outcome_of(second), Outcome::kUnknown);
  EXPECT_EQ(outcome_of(third), Outcome::kUnknown);
  EXPECT_EQ(producer.stats().resent, 0U);
}

TEST_F(ProducerTrouble, ConnectsAgainWhereTheServerIsAReplicaNow) {
  ScriptedServer server{[](Peer& peer) {
                          if (peer.number() > 0) return set_up_and_serve(peer);
                          set_up(peer);
                          expect_entries(peer, {1});
                          peer.send("-READONLY a replica\r\n");
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), quick()};
  send(producer, 0).get();
  EXPECT_EQ(send(producer, 1).get(), id(1));
  EXPECT_EQ(producer.stats().reconnects, 1U);
}

TEST_F(ProducerTrouble, AnswersWithTheReasonWhatCannotBeDeliveredInTime) {
  ProducerOptions options = quick();
  options.delivery_timeout = 30ms;
  Producer producer{nowhere(), options};
  auto future = send(producer, 0);
  ASSERT_EQ(future.wait_for(kGenerous), std::future_status::ready);
  EXPECT_THROW(future.get(), ConnectError);
  EXPECT_EQ(producer.stats().failed, 1U);
}

TEST_F(ProducerTrouble, AnswersWithTheRefusalWhatIsRefusedForTooLong) {
  ScriptedServer server{[](Peer& peer) {
                          peer.expect_client_id();
                          while (!peer.read().empty()) peer.send("-OOM no memory\r\n");
                        },
                        Kind::kUnix};
  ProducerOptions options = quick();
  options.delivery_timeout = 30ms;
  Producer producer{stream(server), options};
  auto future = send(producer, 0);
  ASSERT_EQ(future.wait_for(kGenerous), std::future_status::ready);
  EXPECT_THROW(future.get(), OutOfMemoryError);
}

TEST_F(ProducerTrouble, WaitsForAServerThatIsNotThereYet) {
  const std::string secret = "not yet";
  std::atomic<int> asked{0};
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  ConnectionOptions options = options_for(server);
  // A connect that fails is played by the function for credentials.
  options.credentials = [&]() -> ConnectionOptions::Credentials {
    if (++asked < 5) throw std::runtime_error{secret};
    return {};
  };
  Producer producer{EventStream{ConnectionPool{options}, "s"}, quick()};
  auto first = send(producer, 0);
  auto second = send(producer, 1);
  EXPECT_EQ(first.get(), id(0));
  EXPECT_EQ(second.get(), id(1));
  EXPECT_EQ(asked, 5);
}

TEST_F(ProducerTrouble, ReportsWhatWasSentWholeAsUnknownAndNeverSendsItAgain) {
  ScriptedServer server{[](Peer& peer) {
                          if (peer.number() > 0) {
                            peer.expect_client_id();
                            expect_entries(peer, {4});
                            append(peer, {4});
                            return peer.drain();
                          }
                          set_up(peer);
                          expect_entries(peer, {1, 2, 3});
                          append(peer, {1});
                          peer.close();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), three_at_once()};
  open_with(producer);
  auto first = send(producer, 1);
  auto second = send(producer, 2);
  auto third = send(producer, 3);
  EXPECT_EQ(first.get(), id(1));
  EXPECT_EQ(outcome_of(second), Outcome::kUnknown);
  EXPECT_EQ(outcome_of(third), Outcome::kUnknown);
  auto later = send(producer, 4);
  EXPECT_TRUE(producer.flush(kGenerous));
  EXPECT_EQ(later.get(), id(4));
  const ProducerStats stats = producer.stats();
  EXPECT_EQ(stats.unknown, 2U);
  EXPECT_EQ(stats.resent, 0U);
}

TEST_F(ProducerTrouble, SendsWhatWasHalfWrittenAgainAndKeepsTheOrder) {
  std::atomic<bool> saw_first{false};
  std::atomic<bool> all_sent{false};
  const std::string big(std::size_t{4} << 20, 'x');  // more than any socket takes
  ScriptedServer server{[&](Peer& peer) {
                          if (peer.number() == 0) {
                            set_up(peer);
                            expect_entries(peer, {1});
                            saw_first = true;
                            peer.wait_until([&] { return all_sent.load(); });
                            return peer.close();
                          }
                          peer.expect_client_id();
                          const auto command = peer.read();
                          EXPECT_EQ(command.at(command.size() - 1), big);
                          append(peer, {2});
                          expect_entries(peer, {3});
                          append(peer, {3});
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), quick()};
  send(producer, 0).get();
  auto first = send(producer, 1);
  ASSERT_TRUE(wait_until([&] { return saw_first.load(); }));
  auto second = producer.send({{"n", big}});
  auto third = send(producer, 3);
  ASSERT_TRUE(wait_until([&] { return producer.stats().batches == 3; })) << "it is on its way";
  all_sent = true;
  EXPECT_EQ(outcome_of(first), Outcome::kUnknown);
  EXPECT_EQ(second.get(), id(2));
  EXPECT_EQ(third.get(), id(3));
  EXPECT_EQ(producer.stats().resent, 1U) << "the third had not been written";
}

TEST_F(ProducerTrouble, TakesNoReplyThatComesAfterItGaveUp) {
  std::atomic<bool> gave_up{false};
  ScriptedServer server{[&](Peer& peer) {
                          if (peer.number() > 0) return set_up_and_serve(peer);
                          set_up(peer);
                          expect_entries(peer, {1});
                          peer.wait_until([&] { return gave_up.load(); });
                          append(peer, {1});
                          peer.drain();
                        },
                        Kind::kUnix};
  ConnectionOptions options = options_for(server);
  options.command_timeout = 500ms;
  Producer producer{EventStream{ConnectionPool{options}, "s"}, quick()};
  send(producer, 0).get();
  auto first = send(producer, 1);
  ASSERT_EQ(first.wait_for(kGenerous), std::future_status::ready);
  gave_up = true;
  EXPECT_THROW(first.get(), TimeoutError);
  EXPECT_EQ(send(producer, 2).get(), id(2));
}

TEST_F(ProducerTrouble, NoticesBeforeItSendsThatAnIdleConnectionIsClosed) {
  Gate closed;
  ScriptedServer server{[&](Peer& peer) {
    if (peer.number() > 0) return set_up_and_serve(peer);
    set_up(peer);
    peer.close();
    closed.pass();
  }};
  // Over TCP what is sent first is taken, and lost: nobody would know.
  ConnectionOptions options;
  options.port = server.port();
  options.connect_timeout = options.command_timeout = kGenerous;
  Producer producer{EventStream{ConnectionPool{options}, "s"}, quick()};
  send(producer, 0).get();
  ASSERT_TRUE(producer.flush(kGenerous));  // it is idle then
  ASSERT_TRUE(closed.wait_for_arrivals(1));
  closed.open();
  EXPECT_EQ(send(producer, 1).get(), id(1));
  EXPECT_EQ(producer.stats().unknown, 0U);
}

TEST_F(ProducerTrouble, AnswersAllThatIsLeftWhenItIsDestroyed) {
  Gate got_second;
  ScriptedServer server{[&](Peer& peer) {
                          set_up(peer);
                          expect_entries(peer, {1});
                          got_second.pass();
                          peer.stall();
                        },
                        Kind::kUnix};
  got_second.open();
  ProducerOptions options = quick();
  options.close_timeout = 30ms;
  std::future<StreamId> sent;
  std::future<StreamId> unsent;
  int called = 0;
  {
    Producer producer{stream(server), options};
    send(producer, 0).get();
    sent = send(producer, 1);
    ASSERT_TRUE(got_second.wait_for_arrivals(1));
    auto under_way = producer.send({{"n", std::string(std::size_t{4} << 20, 'x')}});
    unsent = send(producer, 3);
    producer.send({{"n", "4"}}, [&](const AddResult& result) {
      ++called;
      ASSERT_TRUE(result.error.has_value());
      EXPECT_EQ(result.error->outcome(), Outcome::kNotApplied);
    });
  }
  EXPECT_EQ(outcome_of(sent), Outcome::kUnknown);
  EXPECT_EQ(outcome_of(unsent), Outcome::kNotApplied);
  EXPECT_EQ(called, 1);
}

TEST_F(ProducerTrouble, SendsWhatIsQueuedBeforeItIsGone) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  std::vector<std::future<StreamId>> futures;
  {
    ProducerOptions options = quick();
    options.linger = kGenerous;
    Producer producer{stream(server), options};
    for (int n = 0; n < 100; ++n) futures.push_back(send(producer, n));
  }
  for (int n = 0; n < 100; ++n) {
    auto& future = futures[static_cast<std::size_t>(n)];
    ASSERT_EQ(future.wait_for(0ms), std::future_status::ready);
    EXPECT_EQ(future.get(), id(n));
  }
}

TEST_F(ProducerTrouble, IsDestroyedAtOnceWhereThereIsNoServer) {
  ProducerOptions options = quick();
  options.close_timeout = 0ms;
  options.reconnect_min = options.reconnect_max = kGenerous;
  std::future<StreamId> future;
  const auto before = std::chrono::steady_clock::now();
  {
    Producer producer{nowhere(), options};
    future = send(producer, 0);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, kGenerous / 2);
  EXPECT_EQ(outcome_of(future), Outcome::kNotApplied);
}

TEST_F(ProducerTrouble, IsDestroyedAtOnceWhileItConnects) {
  Gate asked;
  asked.open();
  ScriptedServer server{[&](Peer& peer) {
                          static_cast<void>(peer.read());
                          asked.pass();
                          peer.stall();
                        },
                        Kind::kUnix};
  ProducerOptions options = quick();
  options.close_timeout = 0ms;
  std::future<StreamId> future;
  std::chrono::steady_clock::time_point before;
  {
    Producer producer{stream(server), options};
    future = send(producer, 0);
    ASSERT_TRUE(asked.wait_for_arrivals(1));
    before = std::chrono::steady_clock::now();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - before, kGenerous / 2);
  EXPECT_EQ(outcome_of(future), Outcome::kNotApplied);
}

TEST_F(ProducerTrouble, GivesAChildAfterForkAnErrorAndIsNotDisturbedByIt) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  auto producer = std::make_unique<Producer>(stream(server), quick());
  send(*producer, 0).get();
  EXPECT_TRUE(holds_in_a_child([&] {
    const bool refused = is_unsupported([&] { send(*producer, 1); }) &&
                         is_unsupported([&] { producer->flush(0ms); }) &&
                         is_unsupported([&] { static_cast<void>(producer->stats()); });
    producer.reset();
    return refused;
  }));
  EXPECT_EQ(send(*producer, 2).get(), id(2));
  EXPECT_EQ(server.accepted(), 1U);
}

}  // namespace
}  // namespace millrace::test
