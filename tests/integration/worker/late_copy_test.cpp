#include "fault/worker_test.hpp"
#include "millrace_scripts.hpp"
#include "support/proxy.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::test {
namespace {

using ::testing::StartsWith;

/// A script's call is on its way when its connection breaks, and arrives long after the worker has
/// gone on.
class LateCopy : public WorkerTest {
 protected:
  void SetUp() override {
    for (const detail::Script* script :
         {&detail::kBuryScript, &detail::kHoldScript, &detail::kOpenScript, &detail::kRetakeScript,
          &detail::kTakeScript}) {
      raw()("SCRIPT", "LOAD", script->source);  // so that each call is sent once
    }
  }

  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 100ms;
    patient.reap_every = 0ms;
    patient.reconnect_min = patient.reconnect_max = 1ms;
    return patient;
  }

  WorkerOptions often_renewing() {
    WorkerOptions often = patient();
    often.lease_renew_every = 20ms;
    return often;
  }

  /// As a call of hold.lua has it: an entry, its count as it is to be found, and what it becomes.
  static std::string hold(std::string_view id, std::string_view expected, std::string_view next) {
    std::string words;
    for (const std::string_view word : {id, expected, next}) {
      words += "\r\n$" + std::to_string(word.size()) + "\r\n";
      words += word;
    }
    return words + "\r\n";
  }

  /// In minutes; -1 if it is not pending.
  std::int64_t idle(StreamId id) {
    const RawReply reply = raw()("XPENDING", "s", "g", id, id, 1);
    return reply.elements.empty() ? -1 : reply[0][2].integer / 60'000;
  }
  [[nodiscard]] bool is_idle_for(StreamId id, std::int64_t minutes) {
    return wait_until([&] { return idle(id) >= minutes; });
  }

  Proxy proxy_{server()};
};

TEST_F(LateCopy, OfAStartChangesNothing) {
  append_ids(1);
  orphan("alice");
  proxy_.detain_request(hold("1-0", "1", "2"));
  Journal journal;
  ConsumerWorker worker{stream(proxy_.options()), patient(), journal.handler([](const Delivery&) {
                          return Verdict::retry_after(10min);
                        })};
  worker.start();
  ASSERT_TRUE(is_idle_for({1, 0}, 40)) << "parked";
  EXPECT_TRUE(proxy_.has_lost());
  EXPECT_EQ(proxy_.deliver(), "*1\r\n*1\r\n:0\r\n");
  EXPECT_GE(idle({1, 0}), 40);
  EXPECT_EQ(deliveries({1, 0}), 2);
  EXPECT_EQ(journal.size(), 1U);
}

TEST_F(LateCopy, OfATakingInHandChangesNothing) {
  append_ids(1);
  orphan("alice");
  proxy_.detain_request(std::string{detail::kRetakeScript.sha1});
  Journal journal;
  ConsumerWorker worker{stream(proxy_.options()), patient(), journal.handler([](const Delivery&) {
                          return Verdict::retry_after(10min);
                        })};
  worker.start();
  ASSERT_TRUE(is_idle_for({1, 0}, 40)) << "parked";
  EXPECT_TRUE(proxy_.has_lost());
  EXPECT_EQ(proxy_.deliver(), "*5\r\n$3\r\n0-0\r\n*0\r\n*0\r\n*0\r\n*0\r\n");
  EXPECT_GE(idle({1, 0}), 40);
  EXPECT_EQ(deliveries({1, 0}), 2);
}

TEST_F(LateCopy, OfARenewalChangesNothingThatWasGivenBack) {
  append_ids(2);
  Gate gate;
  ConsumerWorker worker{stream(proxy_.options()), often_renewing(),
                        [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  proxy_.detain_request(hold("2-0", "1", "1"));
  ASSERT_TRUE(wait_until([&] { return proxy_.has_lost(); }));
  worker.request_stop();
  ASSERT_TRUE(is_idle_for({2, 0}, 59)) << "a peer may have it at once";

  EXPECT_THAT(proxy_.deliver(), ::testing::AnyOf(StartsWith("*4\r\n*2\r\n:1\r\n:0\r\n"),
                                                 StartsWith("*4\r\n*2\r\n:0\r\n:1\r\n")))
      << "1-0 is ours still";
  EXPECT_GE(idle({2, 0}), 59);
  EXPECT_EQ(deliveries({2, 0}), 0);
  gate.open();
  EXPECT_EQ(worker.stop(kGenerous).released, (Ids{{2, 0}}));
  EXPECT_EQ(pending(), 1);
}

TEST_F(LateCopy, OfARenewalTakesNoNameThatWasGivenFree) {
  append_ids(1);
  Gate gate;
  ConsumerWorker worker{stream(proxy_.options()), often_renewing(),
                        [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  proxy_.detain_request(hold("1-0", "1", "1"));
  ASSERT_TRUE(wait_until([&] { return proxy_.has_lost(); }));
  gate.open();
  worker.stop(kGenerous);

  EXPECT_THAT(proxy_.deliver(), StartsWith("-SUPERSEDED"));
  EXPECT_EQ(raw()("HEXISTS", "{s}:millrace:g", "token:alice"), ":0");
  EXPECT_EQ(raw()("XINFO", "CONSUMERS", "s", "g").elements.size(), 0U);
}

TEST_F(LateCopy, OfARenewalTakesNothingBackFromAPeer) {
  append_ids(1);
  Gate gate;
  ConsumerWorker worker{stream(proxy_.options()), often_renewing(),
                        [&](const Delivery&) { gate.pass(); }};
  worker.start();
  ASSERT_TRUE(gate.wait_for_arrivals(1));
  proxy_.detain_request(hold("1-0", "1", "1"));
  ASSERT_TRUE(wait_until([&] { return proxy_.has_lost(); }));
  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 1'800'000, "JUSTID");

  EXPECT_THAT(proxy_.deliver(), StartsWith("*4\r\n*1\r\n:0\r\n"));
  EXPECT_EQ(owner({1, 0}), "bob");
  EXPECT_GE(idle({1, 0}), 30);
  gate.open();
}

TEST_F(LateCopy, OfABurialWritesNoSecondLetter) {
  append_ids(1);
  proxy_.detain_request(std::string{detail::kBuryScript.sha1});
  ConsumerWorker worker{stream(proxy_.options()), patient(),
                        [](const Delivery&) { return Verdict::dead_letter("no"); }};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; }));
  EXPECT_TRUE(proxy_.has_lost());
  EXPECT_EQ(proxy_.deliver(), ":0\r\n");
  EXPECT_EQ(raw()("XLEN", "{s}:dlq"), ":1");
}

TEST_F(LateCopy, OfATakingOverChangesNothingForAnOlderWorker) {
  append_ids(1);
  orphan("bob");
  const WorkerOptions options = often_renewing();
  WorkerOptions reaper = options;
  reaper.reap_every = 20ms;
  proxy_.detain_request(std::string{detail::kTakeScript.sha1});
  ConsumerWorker older{stream(proxy_.options()), reaper, [](const Delivery&) {}};
  older.start();
  ASSERT_TRUE(wait_until([&] { return proxy_.has_lost(); }));
  ConsumerWorker newer{stream(), options, [](const Delivery&) {}};
  newer.start();
  ASSERT_TRUE(wait_until([&] { return older.state() == WorkerState::kFailed; }));

  raw()("XCLAIM", "s", "g", "bob", 0, "1-0", "IDLE", 7'200'000, "JUSTID");
  EXPECT_THAT(proxy_.deliver(), StartsWith("-SUPERSEDED"));
  EXPECT_EQ(owner({1, 0}), "bob");
}

}  // namespace
}  // namespace millrace::test
