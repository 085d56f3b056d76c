#include "worker_test.hpp"

#include <atomic>

namespace millrace::test {
namespace {

/// A server's user loses a permission that not the reader needs, but what goes on beside it.
class WorkerPermission : public WorkerTest {
 protected:
  /// Its threads need nothing but what the test has them do.
  WorkerOptions quick() {
    WorkerOptions quick = options();
    quick.consumer = {};  // nobody else can have its name, so its reader renews no token
    quick.min_idle = 1h;
    quick.block = 50ms;
    quick.lease_renew_every = 20ms;
    quick.reap_every = 0ms;
    return quick;
  }

  void deny(std::string_view rule) { raw()("ACL", "SETUSER", "default", rule); }
  void permit() { raw()("ACL", "SETUSER", "default", "+@all", "allkeys"); }
  void deny_letters() { raw()("ACL", "SETUSER", "default", "resetkeys", "~s", "~{s}:millrace:*"); }

  [[nodiscard]] static bool comes_to(const ConsumerWorker& worker, WorkerState state) {
    return wait_until([&] { return worker.state() == state; });
  }
  [[nodiscard]] bool says(const std::string& word) {
    return wait_until([&] { return heard().text().find(word) != std::string::npos; });
  }
  std::uint64_t renewed() { return std::stoull(raw()("HGET", "{s}:millrace:g", "renewed").text); }
};

TEST_F(WorkerPermission, ToRenewIsMissedByTheKeeperAloneAndDegradesTheWorker) {
  Journal journal;
  ConsumerWorker worker{stream(), quick(), journal.handler()};
  worker.start();
  ASSERT_TRUE(comes_to(worker, WorkerState::kRunning));
  deny("-hset");
  ASSERT_TRUE(comes_to(worker, WorkerState::kDegraded));
  EXPECT_TRUE(says("XCLAIM (by script) on 's'")) << heard().text();
  EXPECT_TRUE(journal.wait_for(append_ids(3))) << "reading goes on";
  EXPECT_TRUE(nothing_is_pending()) << "and so do acknowledgements";
  EXPECT_EQ(worker.state(), WorkerState::kDegraded);

  permit();
  EXPECT_TRUE(comes_to(worker, WorkerState::kRunning));
}

TEST_F(WorkerPermission, ToParkARetryIsMissedByTheKeeperAloneAndDegradesTheWorker) {
  append_ids(1);
  Journal journal;
  WorkerOptions options = quick();
  options.lease_renew_every = 30min;
  options.retry_backoff = 1ms;
  std::atomic<bool> fails{true};
  ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery&) {
                          RawClient operators{server().options()};
                          if (fails) operators("ACL", "SETUSER", "default", "-xclaim");
                          return fails.exchange(false) ? Verdict::retry() : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(comes_to(worker, WorkerState::kDegraded));
  EXPECT_TRUE(says("XCLAIM (by script) on 's'")) << heard().text();
  EXPECT_TRUE(journal.wait_for(append_ids(1, 1)));
  EXPECT_TRUE(wait_until([&] { return pending() == 1; })) << "acknowledgements go on";

  permit();
  EXPECT_TRUE(comes_to(worker, WorkerState::kRunning));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(journal.calls_for({1, 0}).size(), 2U);
}

TEST_F(WorkerPermission, ForLettersIsNeededByNothingButLetters) {
  deny_letters();
  append_ids(1);
  Journal journal;
  WorkerOptions options = quick();
  options.retry_backoff = 1ms;
  ConsumerWorker worker{stream(), options, journal.handler([](const Delivery& delivery) {
                          if (delivery.entry.id() == StreamId{1, 0}) {
                            return Verdict::dead_letter("no such card");
                          }
                          return delivery.attempt == 1 ? Verdict::retry() : Verdict::ack();
                        })};
  worker.start();
  ASSERT_TRUE(comes_to(worker, WorkerState::kDegraded));
  EXPECT_TRUE(says("XADD (dead letter, by script) on 's'")) << heard().text();
  EXPECT_EQ(pending(), 1) << "nothing is acknowledged first";

  // Reading, parking, taking up again and acknowledging go on, and so do renewals.
  EXPECT_TRUE(journal.wait_for(append_ids(2, 1)));
  EXPECT_TRUE(wait_until([&] { return journal.size() == 5; })) << "a retry of each";
  EXPECT_TRUE(wait_until([&] { return pending() == 1; }));
  const std::uint64_t before = renewed();
  EXPECT_TRUE(wait_until([&] { return renewed() > before; }));
  EXPECT_EQ(owner({1, 0}), worker.consumer());
  EXPECT_EQ(worker.stats().dead_lettered, 0U);
  EXPECT_EQ(worker.state(), WorkerState::kDegraded);

  permit();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_TRUE(comes_to(worker, WorkerState::kRunning));
  const RawReply letters = raw()("XRANGE", "{s}:dlq", "-", "+");
  ASSERT_EQ(letters.elements.size(), 1U);
  EXPECT_EQ(letters[0][1].field("dlq_reason").text, "no such card");
  EXPECT_EQ(journal.calls_for({1, 0}).size(), 1U);
}

TEST_F(WorkerPermission, ForLettersKeepsNothingButTheReaperWaiting) {
  append_ids(1);
  orphan("bob");
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "JUSTID");
  deny_letters();
  Journal journal;
  WorkerOptions options = quick();
  options.reap_every = 10ms;
  ConsumerWorker worker{stream(), options, journal.handler()};
  worker.start();
  ASSERT_TRUE(comes_to(worker, WorkerState::kDegraded));
  EXPECT_TRUE(says("XCLAIM (by script) on 's'")) << heard().text();
  for (std::uint64_t i = 1; i <= 20; ++i) EXPECT_TRUE(journal.wait_for(append_ids(1, i)));
  EXPECT_TRUE(wait_until([&] { return pending() == 1; }));
  EXPECT_EQ(owner({1, 0}), "bob");

  permit();
  EXPECT_TRUE(comes_to(worker, WorkerState::kRunning));
  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_TRUE(nothing_is_pending());
}

}  // namespace
}  // namespace millrace::test
