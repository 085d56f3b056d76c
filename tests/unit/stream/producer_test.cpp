#include <millrace/producer.hpp>

#include "producer_fixture.hpp"
#include "support/gate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using Kind = ScriptedServer::Kind;

TEST_F(ProducerTest, AnswersEachEntryWithItsId) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  Producer producer{stream(server), quick()};
  std::vector<std::future<StreamId>> futures;
  for (int n = 0; n < 1'000; ++n) futures.push_back(send(producer, n));
  for (int n = 0; n < 1'000; ++n) EXPECT_EQ(futures[static_cast<std::size_t>(n)].get(), id(n));

  EXPECT_TRUE(producer.flush(kGenerous));
  const ProducerStats stats = producer.stats();
  EXPECT_EQ(stats.taken, 1'000U);
  EXPECT_EQ(stats.appended, 1'000U);
  EXPECT_EQ(stats.failed + stats.unknown + stats.refused + stats.resent, 0U);
  EXPECT_EQ(stats.queued + stats.queued_bytes, 0U);
  EXPECT_EQ(stats.reconnects, 0U);
  EXPECT_EQ(stats.latency.count, 1'000U);
  EXPECT_EQ(stats.batch_sizes.counts.size(), stats.batch_sizes.bounds.size() + 1);
  std::uint64_t batches = 0;
  for (const std::uint64_t count : stats.batch_sizes.counts) batches += count;
  EXPECT_EQ(batches, stats.batches);
  EXPECT_GE(stats.batch_sizes.counts.front(), 1U) << "the first entry goes alone";
}

TEST_F(ProducerTest, KeepsTwoBatchesUnderWayAndTrimsWithTheLastOfEach) {
  std::atomic<int> seen{0};
  std::atomic<bool> goes_on{false};
  const auto trims = [](const Peer::Command& command) {
    return std::find(command.begin(), command.end(), "MAXLEN") != command.end();
  };
  ScriptedServer server{[&](Peer& peer) {
                          set_up(peer);
                          EXPECT_TRUE(trims(peer.read()));
                          seen = 1;
                          EXPECT_TRUE(trims(peer.read()));
                          seen = 2;
                          peer.wait_until([&] { return goes_on.load(); });
                          append(peer, {1});
                          const Peer::Command third = peer.read();
                          ASSERT_FALSE(third.empty());
                          EXPECT_EQ(third.back(), "3");
                          EXPECT_FALSE(trims(third));
                          const Peer::Command fourth = peer.read();
                          ASSERT_FALSE(fourth.empty());
                          EXPECT_EQ(fourth.back(), "4");
                          EXPECT_TRUE(trims(fourth));
                          append(peer, {2, 3, 4});
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server, {.retention = Trim::max_len(5)}), quick()};
  send(producer, 0).get();
  auto first = send(producer, 1);
  ASSERT_TRUE(wait_until([&] { return seen == 1; }));
  auto second = send(producer, 2);
  ASSERT_TRUE(wait_until([&] { return seen == 2; })) << "though there is no reply to the first";
  auto third = send(producer, 3);
  auto fourth = send(producer, 4);
  EXPECT_FALSE(wait_until([&] { return producer.stats().batches > 3; }, 50ms)) << "two, not more";
  goes_on = true;
  EXPECT_EQ(first.get(), id(1));
  EXPECT_EQ(second.get(), id(2));
  EXPECT_EQ(third.get(), id(3));
  EXPECT_EQ(fourth.get(), id(4));
  EXPECT_EQ(producer.stats().batches, 4U);
}

TEST_F(ProducerTest, LingersUntilABatchIsFull) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  ProducerOptions options = quick();
  options.linger = kGenerous;
  options.max_batch = 3;
  Producer producer{stream(server), options};
  auto first = send(producer, 0);
  auto second = send(producer, 1);
  EXPECT_EQ(first.wait_for(20ms), std::future_status::timeout);
  auto third = send(producer, 2);
  EXPECT_EQ(first.wait_for(kGenerous / 2), std::future_status::ready);
  EXPECT_EQ(second.get(), id(1));
  EXPECT_EQ(third.get(), id(2));
}

TEST_F(ProducerTest, DoesNotLingerBeyondItsTime) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  ProducerOptions options = quick();
  options.linger = 30ms;
  Producer producer{stream(server), options};
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(send(producer, 0).get(), id(0));
  EXPECT_GE(std::chrono::steady_clock::now() - before, 29ms);
}

TEST_F(ProducerTest, DoesNotLingerWhereItIsFlushed) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  ProducerOptions options = quick();
  options.linger = kGenerous * 2;
  Producer producer{stream(server), options};
  auto future = send(producer, 0);
  EXPECT_TRUE(producer.flush(kGenerous));
  EXPECT_EQ(future.wait_for(0ms), std::future_status::ready);
}

TEST_F(ProducerTest, AnswersOneEntrysErrorToItAlone) {
  ScriptedServer server{[](Peer& peer) {
                          set_up(peer);
                          expect_entries(peer, {1, 2, 3});
                          append(peer, {1});
                          peer.send("-WRONGTYPE it is a list\r\n");
                          append(peer, {3});
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), three_at_once()};
  open_with(producer);
  auto first = send(producer, 1);
  auto second = send(producer, 2);
  auto third = send(producer, 3);
  EXPECT_EQ(first.get(), id(1));
  EXPECT_THROW(second.get(), WrongTypeError);
  EXPECT_EQ(third.get(), id(3));
  EXPECT_EQ(producer.stats().failed, 1U);
}

TEST_F(ProducerTest, AnswersAReplyThatMakesNoSenseWithAProtocolError) {
  ScriptedServer server{[](Peer& peer) {
                          set_up(peer);
                          expect_entries(peer, {1});
                          peer.send("+OK\r\n");
                          peer.drain();
                        },
                        Kind::kUnix};
  Producer producer{stream(server), quick()};
  send(producer, 0).get();
  auto odd = send(producer, 1);
  EXPECT_THROW(odd.get(), ProtocolError);
}

TEST_F(ProducerTest, WaitsForRoomAsLongAsItMay) {
  Gate gate;
  ScriptedServer server{[&](Peer& peer) {
                          peer.expect_client_id();
                          expect_entries(peer, {0});
                          gate.pass();
                          append(peer, {0});
                          serve(peer);
                        },
                        Kind::kUnix};
  ProducerOptions options = quick();
  options.max_queued = 2;
  Producer producer{stream(server), options};
  auto first = send(producer, 0);
  auto second = send(producer, 1);
  std::atomic<bool> taken{false};
  std::thread third{[&] {
    auto future = send(producer, 2);
    taken = true;
    EXPECT_EQ(future.get(), id(2));
  }};
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_EQ(producer.stats().queued, 2U);
  EXPECT_FALSE(taken);
  gate.open();
  third.join();
  EXPECT_EQ(first.get(), id(0));
  EXPECT_EQ(second.get(), id(1));
  EXPECT_EQ(producer.stats().refused, 0U);
}

TEST_F(ProducerTest, RefusesWhatHasNoRoomAndTakesNothing) {
  ProducerOptions options = quick();
  options.max_queued = 2;
  options.send_timeout = 0ms;
  options.close_timeout = 0ms;
  std::vector<std::future<StreamId>> futures;
  {
    Producer producer{nowhere(), options};
    futures.push_back(send(producer, 0));
    futures.push_back(send(producer, 1));
    try {
      send(producer, 2);
      FAIL() << "it was taken";
    } catch (const TimeoutError& error) {
      EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
      EXPECT_NE(std::string{error.what()}.find("max_queued of 2"), std::string::npos);
    }
    EXPECT_EQ(producer.stats().refused, 1U);
    EXPECT_EQ(producer.stats().queued, 2U);
  }
  for (auto& future : futures) EXPECT_EQ(outcome_of(future), Outcome::kNotApplied);
}

TEST_F(ProducerTest, BoundsBytesAsWell) {
  ProducerOptions options = quick();
  options.max_queued_bytes = 200;
  options.send_timeout = options.close_timeout = 0ms;
  Producer producer{nowhere(), options};
  const std::string big(100, 'x');
  auto future = producer.send({{"n", big}});
  EXPECT_GT(producer.stats().queued_bytes, 100U);
  EXPECT_THROW(producer.send({{"n", big}}), TimeoutError);
  EXPECT_THROW(producer.send({{"n", std::string(200, 'x')}}), InvalidArgument);
}

TEST_F(ProducerTest, RefusesWhatCanNeverBeAppended) {
  Producer producer{nowhere(), quick()};
  EXPECT_THROW(producer.send(OwnedFields{}), InvalidArgument);
  EXPECT_THROW(producer.send({{"a", "b"}}, nullptr), InvalidArgument);
  EXPECT_EQ(producer.stats().taken, 0U);
  EXPECT_TRUE(producer.flush(0ms));
}

TEST_F(ProducerTest, CallsBackInTheOrderOfTheSends) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  Producer producer{stream(server), quick()};
  std::vector<std::uint64_t> ids;
  for (int n = 0; n < 500; ++n) {
    producer.send({{"n", std::to_string(n)}},
                  [&](const AddResult& result) { ids.push_back(result.id.value().ms); });
  }
  ASSERT_TRUE(producer.flush(kGenerous));
  ASSERT_EQ(ids.size(), 500U);
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
}

TEST_F(ProducerTest, GoesOnWhenACallbackThrows) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  Producer producer{stream(server), quick()};
  producer.send({{"n", "0"}}, [](const AddResult&) { throw std::runtime_error{"of the user"}; });
  producer.send({{"n", "1"}}, [](const AddResult&) { throw 5; });
  EXPECT_EQ(send(producer, 2).get(), id(2));
  EXPECT_EQ(producer.stats().callback_throws, 2U);
}

TEST_F(ProducerTest, LetsACallbackSendIntoThePlaceThatItsEntryLeaves) {
  constexpr int kLinks = 100;
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  ProducerOptions options = quick();
  options.max_queued = 1;
  std::promise<int> end;
  std::function<void(int)> link;
  Producer producer{stream(server), options};
  link = [&](int n) {
    producer.send({{"n", std::to_string(n)}}, [&, n](const AddResult& result) {
      if (!result.id || n == kLinks) return end.set_value(n);
      link(n + 1);
    });
  };
  link(0);
  auto reached = end.get_future();
  ASSERT_EQ(reached.wait_for(kGenerous), std::future_status::ready);
  EXPECT_EQ(reached.get(), kLinks);
}

TEST_F(ProducerTest, RefusesACallbacksSendAtOnceWhereThereIsNoRoom) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  ProducerOptions options = quick();
  options.max_queued = 1;
  Producer producer{stream(server), options};
  std::promise<bool> refused;
  producer.send({{"n", "0"}}, [&](const AddResult&) {
    producer.send({{"n", "1"}}, [](const AddResult&) {});
    try {
      producer.send({{"n", "2"}}, [](const AddResult&) {});
      refused.set_value(false);
    } catch (const TimeoutError&) {
      refused.set_value(true);
    }
  });
  auto was_refused = refused.get_future();
  ASSERT_EQ(was_refused.wait_for(kGenerous / 2), std::future_status::ready) << "it waits";
  EXPECT_TRUE(was_refused.get());
}

TEST_F(ProducerTest, RefusesToFlushInACallback) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  Producer producer{stream(server), quick()};
  std::promise<bool> refused;
  producer.send({{"n", "0"}}, [&](const AddResult&) {
    try {
      producer.flush(kGenerous);
      refused.set_value(false);
    } catch (const InvalidArgument&) {
      refused.set_value(true);
    }
  });
  EXPECT_TRUE(refused.get_future().get());
}

TEST_F(ProducerTest, FlushesWhatWasTakenBeforeAndNothingElse) {
  Gate gate;
  ScriptedServer server{[&](Peer& peer) {
                          peer.expect_client_id();
                          expect_entries(peer, {0});
                          append(peer, {0});
                          expect_entries(peer, {1});
                          gate.pass();
                          append(peer, {1});
                          serve(peer);
                        },
                        Kind::kUnix};
  Producer producer{stream(server), quick()};
  send(producer, 0);
  EXPECT_TRUE(producer.flush(kGenerous));
  auto second = send(producer, 1);
  EXPECT_FALSE(producer.flush(5ms));
  gate.open();
  EXPECT_TRUE(producer.flush(kGenerous));
  EXPECT_EQ(second.wait_for(0ms), std::future_status::ready);
}

TEST_F(ProducerTest, FlushWaitsUntilACallbackHasReturned) {
  ScriptedServer server{set_up_and_serve, Kind::kUnix};
  Producer producer{stream(server), quick()};
  Gate gate;
  std::atomic<bool> returned{false};
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  producer.send({{"n", "0"}}, [&, held = std::move(held)](const AddResult&) {
    gate.pass();
    returned = true;
  });
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  EXPECT_FALSE(producer.flush(5ms));
  gate.open();
  EXPECT_TRUE(producer.flush(kGenerous));
  EXPECT_TRUE(returned);
  EXPECT_TRUE(watched.expired()) << "what the callback holds is gone as well";
}

}  // namespace
}  // namespace millrace::test
