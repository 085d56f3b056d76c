#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <atomic>
#include <string>

namespace millrace::test {
namespace {

/// Entries of one key that wait behind one that failed, with little memory for payloads. The
/// parameter is the number of handler calls at once.
class WorkerLanes : public WorkerTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  /// Nothing comes back by being idle.
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 50ms;
    patient.reap_every = 0ms;
    patient.prefetch = 4;
    patient.prefetch_bytes = 1'000;
    patient.max_deliveries = 1'000'000;
    patient.concurrency = GetParam();
    patient.key = [](const Entry& entry) { return std::string{entry.at("key")}; };
    return patient;
  }

  /// Appends what comes after `after`.
  Ids append_of(const std::string& key, std::size_t count, std::uint64_t after) {
    Ids ids;
    for (std::size_t i = 1; i <= count; ++i) {
      ids.push_back({after + i, 0});
      raw()("XADD", "s", ids.back(), "key", key, "payload", std::string(400, 'x'));
    }
    return ids;
  }

  /// The first entry fails until `may_pass_`.
  Handler handler() {
    return journal_.handler([this](const Delivery& delivery) {
      if (delivery.entry.at("payload").size() != 400) ++wrong_;
      if (delivery.entry.id() != StreamId{1, 0} || may_pass_) return Verdict::ack();
      return Verdict::retry_after(20ms);
    });
  }
  /// What was handled of the first `count` entries, which are of one key; the first one once.
  Ids handled(std::size_t count) const {
    Ids ids;
    for (const StreamId id : journal_.ids()) {
      if (id.ms <= count && (ids.empty() || ids.back() != id)) ids.push_back(id);
    }
    return ids;
  }
  /// How many starts others than the first one had that were not their first.
  std::size_t counted_twice() const {
    const auto calls = journal_.calls();
    return static_cast<std::size_t>(
        std::count_if(calls.begin(), calls.end(), [](const Journal::Call& call) {
          return call.id != StreamId{1, 0} && call.attempt != 1;
        }));
  }
  std::string letters() { return raw()("XLEN", "{s}:dlq").str(); }

  Journal journal_;
  std::atomic<bool> may_pass_{false};
  std::atomic<int> wrong_{0};
};

TEST_P(WorkerLanes, KeepNoPayloadsBehindARetryThatWaitsAndHaveOthersGoOn) {
  const Ids hot = append_of("hot", 40, 0);
  const Ids cold = append_of("cold", 20, 40);
  ConsumerWorker worker{stream(), patient(), handler()};
  worker.start();
  ASSERT_TRUE(journal_.wait_for(cold)) << "40 payloads of the other key do not stop it";
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == hot.size(); }));
  EXPECT_EQ(handled(hot.size()), (Ids{{1, 0}}));
  EXPECT_LT(worker.stats().queued_bytes, 1'000U);
  may_pass_ = true;
  ASSERT_TRUE(journal_.wait_for(hot));
  EXPECT_EQ(handled(hot.size()), hot) << "in their order";
  EXPECT_EQ(counted_twice(), 0U);
  EXPECT_EQ(wrong_, 0);
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(letters(), ":0");
}

TEST_P(WorkerLanes, PutAsideWhatHasLeftTheStreamWhileItWaitedWithoutItsPayload) {
  const Ids hot = append_of("hot", 10, 0);
  ConsumerWorker worker{stream(), patient(), handler()};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == hot.size(); }));
  ASSERT_TRUE(wait_until([&] { return journal_.calls_for({1, 0}).size() > 1; }));
  raw()("XDEL", "s", "3-0", "5-0");
  raw()("XACK", "s", "g", "5-0");  // as XTRIM with DELREF does: nobody else writes its letter
  may_pass_ = true;
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
  EXPECT_EQ(handled(hot.size()),
            (Ids{{1, 0}, {2, 0}, {4, 0}, {6, 0}, {7, 0}, {8, 0}, {9, 0}, {10, 0}}));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(letters(), ":2");
  EXPECT_EQ(worker.stats().dead_lettered, 2U);
}

TEST_P(WorkerLanes, PutAsideOnceWhatHasLeftTheStreamMeanwhile) {
  const Ids hot = append_of("hot", 10, 0);
  WorkerOptions options = patient();
  options.reap_every = 20ms;
  ConsumerWorker worker{stream(), options, handler()};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == hot.size(); }));
  ASSERT_TRUE(wait_until([&] { return journal_.calls_for({1, 0}).size() > 1; }));
  raw()("XCLAIM", "s", "g", worker.consumer(), 0, "3-0", "IDLE", 7'200'000, "JUSTID");
  raw()("XDEL", "s", "3-0");
  const auto pages = calls_of("xpending");
  ASSERT_TRUE(wait_until([&] { return calls_of("xpending") > pages + 20; }));
  EXPECT_EQ(letters(), ":0") << "it is held";
  may_pass_ = true;
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == 0; }));
  EXPECT_EQ(handled(hot.size()).size(), hot.size() - 1);
  EXPECT_EQ(letters(), ":1") << "nobody has its payload";
}

TEST_P(WorkerLanes, CountNoStartThatALostConnectionKeptFromBeingMade) {
  const Ids hot = append_of("hot", 10, 0);
  Proxy proxy{server()};
  WorkerOptions options = patient();
  options.reconnect_min = 1ms;
  options.reconnect_max = 5ms;
  ConsumerWorker worker{stream(proxy.options()), options, handler()};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == hot.size(); }));
  ASSERT_TRUE(wait_until([&] { return journal_.calls_for({1, 0}).size() > 1; }));
  // Of the payloads that are fetched one after another.
  proxy.lose_request("\r\n3-0\r\n$1\r\n1\r\n");
  proxy.lose_reply_to("\r\n6-0\r\n$1\r\n1\r\n");
  may_pass_ = true;
  ASSERT_TRUE(journal_.wait_for(hot));
  EXPECT_EQ(handled(hot.size()), hot);
  EXPECT_EQ(counted_twice(), 0U);
  EXPECT_TRUE(proxy.has_lost());
  EXPECT_TRUE(nothing_is_pending());
}

TEST_P(WorkerLanes, GiveBackWhatWaitsWithoutItsPayloadAtAStop) {
  const Ids hot = append_of("hot", 10, 0);
  {
    ConsumerWorker worker{stream(), patient(), handler()};
    worker.start();
    ASSERT_TRUE(wait_until([&] { return worker.stats().in_flight == hot.size(); }));
    ASSERT_TRUE(wait_until([&] { return journal_.calls_for({1, 0}).size() > 1; }));
    EXPECT_GE(worker.stop(kGenerous).released.size(), hot.size() - 1);
  }
  for (const StreamId id : hot) {
    if (id == StreamId{1, 0}) continue;
    EXPECT_EQ(deliveries(id), 0) << "as if never delivered";
  }
}

INSTANTIATE_TEST_SUITE_P(With, WorkerLanes, ::testing::Values(1U, 4U), [](const auto& concurrency) {
  return concurrency.param == 1 ? std::string{"One"} : std::string{"Four"};
});

}  // namespace
}  // namespace millrace::test
