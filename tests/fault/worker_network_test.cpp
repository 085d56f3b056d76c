#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <atomic>
#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

class WorkerNetwork : public WorkerTest {
 protected:
  WorkerOptions quick() {
    WorkerOptions quick = options();
    quick.block = 100ms;
    quick.reconnect_min = 1ms;
    quick.reconnect_max = 50ms;
    return quick;
  }
  /// Through the proxy, with time-outs that a test can wait for.
  static ConnectionOptions impatient(const Proxy& proxy) {
    ConnectionOptions options = proxy.options();
    options.connect_timeout = options.command_timeout = 500ms;
    return options;
  }
};

TEST_F(WorkerNetwork, ReadsOnAfterItsConnectionsWereCutWhileItWaited) {
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions patient = quick();
  patient.block = 5s;
  ConsumerWorker worker{stream(proxy.options()), patient, journal.handler()};
  worker.start();
  for (std::uint64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(blocked());
    const std::size_t connected = heard().connected();
    proxy.cut();
    ASSERT_TRUE(wait_until([&] { return heard().connected() > connected; }));
    EXPECT_TRUE(journal.wait_for(append_ids(1, i))) << i;
  }
  EXPECT_EQ(worker.stats().reconnects, 5U);
  EXPECT_EQ(heard().connections_lost().size(), 5U);
  EXPECT_EQ(journal.repeated(), Ids{});
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerNetwork, NoticesAPeerThatSaysNothingAnyMore) {
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions quick = this->quick();
  quick.reap_every = 0ms;  // it is a read that finds out
  ConsumerWorker worker{stream(impatient(proxy)), quick, journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));

  proxy.stall();
  const auto stalled = Clock::now();
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
  EXPECT_LT(Clock::now() - stalled, 2 * *quick.block + 500ms + 5s);
  const Ids ids = append_ids(3);
  proxy.flow();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kRunning; }));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerNetwork, TakesAReplyThatComesLate) {
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions quick = this->quick();
  quick.reap_every = 0ms;  // it is the reply to a read
  ConsumerWorker worker{stream(proxy.options()), quick, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());

  proxy.stall();
  const Ids ids = append_ids(3);
  const auto late = Clock::now() + 500ms;  // five times the block time
  ASSERT_TRUE(wait_until([&] { return Clock::now() >= late; }));
  proxy.flow();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_EQ(worker.stats().reconnects, 0U);
  EXPECT_EQ(journal.calls().front().attempt, 1U);
}

TEST_F(WorkerNetwork, FindsWhatWasDeliveredToAConnectionThatItGaveUp) {
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions slow = quick();
  slow.block = 2s;
  slow.min_idle = 1h;  // nothing is to be reaped
  ConsumerWorker worker{stream(impatient(proxy)), slow, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());

  // The server delivers the first of them to a read whose reply never arrives.
  proxy.stall();
  const Ids ids = append_ids(3);
  ASSERT_EQ(pending(), 1);
  ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
  proxy.flow();
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_EQ(journal.calls_for({1, 0}).front().attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerNetwork, KeepsTheOrderOfAKeyWhenTheStartOfARetryIsLost) {
  for (const bool before : {true, false}) {
    Proxy proxy{server()};
    Journal journal;
    WorkerOptions ordered = quick();
    ordered.concurrency = 2;
    ordered.retry_backoff = 50ms;
    ordered.reap_every = 0ms;  // one script fewer
    ordered.key = [](const Entry&) { return std::string{"one for all"}; };
    ConsumerWorker worker{stream(impatient(proxy)), ordered,
                          journal.handler([&](const Delivery& delivery) {
                            if (delivery.attempt > 1 || delivery.entry.id().ms != 1)
                              return Verdict::ack();
                            // It is the next script but for those that renew, which come seldom.
                            before ? proxy.lose_request("EVALSHA") : proxy.lose_reply_to("EVALSHA");
                            return Verdict::retry();
                          })};
    worker.start();
    ASSERT_TRUE(worker.wait_ready(kGenerous));
    const Ids ids = append_ids(10);
    EXPECT_TRUE(journal.wait_for(ids));
    EXPECT_TRUE(wait_until([&] { return journal.size() == ids.size() + 1; }));
    EXPECT_TRUE(proxy.has_lost());
    Ids expected = ids;
    expected.insert(expected.begin(), ids.front());
    EXPECT_EQ(journal.ids(), expected);
    worker.stop();
    raw()("DEL", "s");
  }
}

TEST_F(WorkerNetwork, FindsWhatItsHalfOpenConnectionSwallowed) {
  Proxy proxy{server()};
  Journal journal;
  WorkerOptions slow = quick();
  slow.block = 2s;
  slow.min_idle = 1h;  // nothing is to be reaped
  slow.lease_renew_every = 100ms;
  ConsumerWorker worker{stream(impatient(proxy)), slow, journal.handler()};
  worker.start();
  ASSERT_TRUE(blocked());

  // The server goes on to serve the read that it has, to nobody. The worker has found a new
  // connection, and that nothing was pending, before that has a reply.
  proxy.half_open(Proxy::End::kServer);
  ASSERT_TRUE(blocked(2));
  const Ids ids = append_ids(1);
  ASSERT_EQ(owner({1, 0}), "alice");
  EXPECT_TRUE(journal.wait_for(ids));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerNetwork, NoticesThatTheServersEndIsGone) {
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker worker{stream(impatient(proxy)), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  proxy.half_open(Proxy::End::kClient);
  EXPECT_TRUE(journal.wait_for(append_ids(3)));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerNetwork, LosesNothingWhileAllConnectionsAreKilledAgainAndAgain) {
  constexpr std::size_t kEntries = 3'000;
  Journal journal;
  WorkerOptions alice = quick();
  alice.min_idle = 1h;  // what is lost is not to be found by reaping
  alice.lease_renew_every = 100ms;
  WorkerOptions bob = alice;
  bob.consumer = "bob";
  ConsumerWorker first{stream(), alice, journal.handler()};
  ConsumerWorker second{stream(), bob, journal.handler()};
  first.start();
  second.start();
  ASSERT_TRUE(first.wait_ready(kGenerous));
  ASSERT_TRUE(second.wait_ready(kGenerous));

  std::atomic<bool> appended{false};
  std::thread killer{[&] {
    RawClient admin{server().options()};
    while (!appended) admin("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  }};
  Ids ids;
  for (std::uint64_t i = 1; i <= kEntries; ++i) {
    ids.push_back({i, 0});
    // This connection is killed as well.
    while (true) {
      try {
        raw()("XADD", "s", ids.back(), "f", "v");  // once more is "equal or smaller"
        break;
      } catch (const std::runtime_error&) {
        forget_raw();
      }
    }
  }
  appended = true;
  killer.join();
  forget_raw();

  EXPECT_TRUE(journal.wait_for(ids)) << journal.missing(ids).size() << " are missing";
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.overlapping(), std::set<StreamId>{});
  EXPECT_GT(first.stats().reconnects + second.stats().reconnects, 0U);
  EXPECT_LE(heard().lines().size(), 20U) << heard().text();
}

TEST_F(WorkerNetwork, LosesNothingWhereAnyReplyMayBeLost) {
  Proxy proxy{server()};
  Journal journal;
  ConsumerWorker worker{stream(proxy.options()), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(kGenerous));
  Ids ids;
  for (const std::string command : {"XREADGROUP", "XACK", "EVALSHA"}) {
    for (int i = 0; i < 5; ++i) {
      proxy.lose_reply_to(command);
      const Ids more = append_ids(20, ids.size());
      ids.insert(ids.end(), more.begin(), more.end());
      ASSERT_TRUE(journal.wait_for(ids)) << command << ' ' << journal.missing(ids).size();
      ASSERT_TRUE(wait_until([&] { return proxy.has_lost(); })) << command;
    }
  }
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.repeated(), Ids{});
}

}  // namespace
}  // namespace millrace::test
