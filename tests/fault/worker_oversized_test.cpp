#include "support/proxy.hpp"
#include "worker_test.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace millrace::test {
namespace {

/// Pages, and entries, that are too big to arrive within the time-out.
class WorkerOversized : public WorkerTest {
 protected:
  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 20ms;
    patient.prefetch = 4;
    patient.reconnect_min = patient.reconnect_max = 1ms;
    patient.retry_backoff = 1h;
    return patient;
  }

  /// Through the proxy, with a time-out that a test can wait for.
  static ConnectionOptions impatient(const Proxy& proxy) {
    ConnectionOptions options = proxy.options();
    options.command_timeout = 500ms;
    return options;
  }

  /// 1-0 to 4-0, of which 2-0 is big; all have been given to `consumer`.
  void given_pending(std::string_view consumer) {
    for (std::uint64_t i = 1; i <= 4; ++i) {
      raw()("XADD", "s", StreamId{i, 0}, "f", std::string(i == 2 ? 100'000 : 10, 'x'));
    }
    orphan(consumer);
  }
  void make_idle(const Ids& ids) {
    for (const StreamId id : ids) {
      raw()("XCLAIM", "s", "g", "bob", 0, id, "IDLE", 7'200'000, "JUSTID");
    }
  }

  /// Entries of a kilobyte each.
  Ids append_kilobytes(std::uint64_t count) {
    Ids ids;
    for (std::uint64_t i = 1; i <= count; ++i) {
      ids.push_back({i, 0});
      raw()("XADD", "s", ids.back(), "f", std::string(1'000, 'x'));
    }
    return ids;
  }
  WorkerOptions by_eight() {
    WorkerOptions eight = patient();
    eight.prefetch = 8;
    return eight;
  }

  std::size_t times_said(std::string_view words) {
    std::size_t times = 0;
    for (const auto& line : heard().lines()) {
      if (line.text.find(words) == std::string::npos) continue;
      EXPECT_EQ(line.level, Observer::LogLevel::kWarning);
      ++times;
    }
    return times;
  }

  const std::string step_past_ = "entry 2-0 of 's' did not arrive";
};

TEST_F(WorkerOversized, APageIsHalvedUntilItArrives) {
  const Ids ids = append_kilobytes(8);
  orphan("alice");
  Proxy proxy{server()};
  proxy.limit_replies(3'500);
  Journal journal;
  ConsumerWorker worker{stream(impatient(proxy)), by_eight(), journal.handler()};
  worker.start();

  ASSERT_TRUE(journal.wait_for(ids)) << ::testing::PrintToString(journal.ids()) << '\n'
                                     << heard().text();
  EXPECT_EQ(journal.ids(), ids);
  for (const Journal::Call& call : journal.calls()) EXPECT_EQ(call.attempt, 2U) << call.id;
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(times_said("alone"), 0U) << heard().text();
}

TEST_F(WorkerOversized, ReadsAskForLessUntilTheyArrive) {
  const Ids ids = append_kilobytes(24);
  Proxy proxy{server()};
  proxy.limit_replies(3'500);
  Journal journal;
  ConsumerWorker worker{stream(impatient(proxy)), by_eight(), journal.handler()};
  worker.start();

  ASSERT_TRUE(journal.wait_for(ids)) << heard().text();
  EXPECT_TRUE(nothing_is_pending());
  const auto calls = journal.calls();
  EXPECT_TRUE(std::any_of(calls.begin(), calls.end(), [](const auto& call) {
    return call.attempt == 1;
  })) << "the others came by recovery, when their read was given up";
}

TEST_F(WorkerOversized, AnOwnEntryThatDoesNotArriveAloneKeepsNoOtherWaiting) {
  given_pending("alice");
  append_ids(1, 4);
  Proxy proxy{server()};
  proxy.limit_replies(10'000);
  Journal journal;
  ConsumerWorker worker{stream(impatient(proxy)), patient(), journal.handler()};
  worker.start();

  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {3, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {3, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(owner({2, 0}), "alice");
  EXPECT_EQ(deliveries({2, 0}), 2) << "that counts as a start";
  EXPECT_EQ(times_said(step_past_), 1U) << heard().text();

  // Nor does it after the connections were lost: it is not asked for again at once.
  const std::size_t lost = heard().connections_lost().size();
  const std::size_t connected = heard().connected();
  kill_clients();
  ASSERT_TRUE(wait_until([&] { return heard().connected() > connected; }));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 5)));
  EXPECT_EQ(heard().connections_lost().size(), lost + 1) << heard().text();
  EXPECT_EQ(times_said(step_past_), 1U) << heard().text();
  EXPECT_TRUE(wait_until([&] { return pending() == 1; }));
}

TEST_F(WorkerOversized, AnEntryThatIsTakenOverAndDoesNotArriveKeepsNoOtherWaiting) {
  given_pending("bob");
  make_idle({{1, 0}, {2, 0}, {3, 0}, {4, 0}});
  Proxy proxy{server()};
  proxy.limit_replies(10'000);
  Journal journal;
  ConsumerWorker worker{stream(impatient(proxy)), patient(), journal.handler()};
  worker.start();

  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {3, 0}, {4, 0}}));
  EXPECT_TRUE(journal.wait_for(append_ids(1, 4)));
  EXPECT_TRUE(wait_until([&] { return pending() == 1; }));
  EXPECT_EQ(deliveries({2, 0}), 2);
  EXPECT_EQ(times_said(step_past_), 1U) << heard().text();
}

TEST_F(WorkerOversized, AnEntryThatNeverArrivesIsPutAsideWithItsPayload) {
  given_pending("alice");
  Proxy proxy{server()};
  proxy.limit_replies(10'000);
  Journal journal;
  WorkerOptions soon = patient();
  soon.retry_backoff = 1ms;
  soon.max_deliveries = 3;
  ConsumerWorker worker{stream(impatient(proxy)), soon, journal.handler()};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; })) << heard().text();
  const RawReply letter = raw()("XRANGE", "{s}:dlq", "-", "+")[0][1];
  EXPECT_EQ(letter.field("dlq_id").text, "2-0");
  EXPECT_EQ(letter.field("dlq_attempts").text, "3");
  EXPECT_EQ(letter.field("f").text.size(), 100'000U);
  EXPECT_EQ(journal.ids(), (Ids{{1, 0}, {3, 0}, {4, 0}}));
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerOversized, AnEntryThatDidNotArriveIsAskedForAgainLater) {
  given_pending("alice");
  Proxy proxy{server()};
  proxy.limit_replies(10'000);
  Journal journal;
  WorkerOptions soon = patient();
  soon.retry_backoff = 500ms;
  ConsumerWorker worker{stream(impatient(proxy)), soon, journal.handler()};
  worker.start();
  ASSERT_TRUE(wait_until([&] { return times_said(step_past_) > 0; })) << heard().text();
  proxy.limit_replies(std::nullopt);

  EXPECT_TRUE(journal.wait_for(Ids{{1, 0}, {2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(journal.calls_for({2, 0}).front().attempt, 3U);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerOversized, AnEntryThatNobodyWantsKeepsNobodyFromOpeningAndRenewing) {
  raw()("XADD", "s", "1-0", "f", std::string(100'000, 'x'));
  raw()("XGROUP", "CREATE", "s", "g", "$");
  Proxy proxy{server()};
  proxy.limit_replies(10'000);
  Journal journal;
  WorkerOptions busy = patient();
  busy.lease_renew_every = 20ms;
  ConsumerWorker worker{stream(impatient(proxy)), busy, journal.handler()};
  worker.start();
  ASSERT_TRUE(worker.wait_ready(10s)) << heard().text();
  std::set<std::string> renewals;
  EXPECT_TRUE(wait_until([&] {
    renewals.insert(raw()("HGET", "{s}:millrace:g", "renewed").text);
    return renewals.size() == 5;
  }));
  EXPECT_TRUE(heard().connections_lost().empty()) << heard().text();
}

TEST_F(WorkerOversized, OnDemandAsksForLessTheNextTime) {
  Ids ids;
  for (std::uint64_t i = 1; i <= 4; ++i) {
    ids.push_back({i, 0});
    raw()("XADD", "s", ids.back(), "f", std::string(1'000, 'x'));
  }
  orphan("bob");
  make_idle(ids);
  Proxy proxy{server()};
  proxy.limit_replies(2'500);
  Journal journal;
  ConsumerWorker worker{stream(impatient(proxy)), patient(), journal.handler()};
  EXPECT_EQ(worker.reap_idle_pending().error.value().code(), Error::Code::kTimeout);
  make_idle(ids);
  EXPECT_EQ(worker.reap_idle_pending().processed, 4U);
  EXPECT_TRUE(nothing_is_pending());
}

/// An entry with more fields than a script can pass on: its letter is written, and then it is
/// acknowledged.
class WorkerLargeLetter : public WorkerTest {
 protected:
  /// `disturb` comes before the letter is written. How many letters there are in the end.
  std::size_t letters_after(const std::function<void(Proxy&)>& disturb) {
    std::vector<std::string> words{"XADD", "s", "1-0"};
    for (int i = 0; i < 4'000; ++i) words.insert(words.end(), {std::to_string(i), "v"});
    EXPECT_EQ(raw().call(words).text, "1-0");
    Proxy proxy{server()};
    WorkerOptions options = this->options();
    options.min_idle = 1h;
    options.block = 100ms;
    options.reconnect_min = options.reconnect_max = 1ms;
    Journal journal;
    ConsumerWorker worker{stream(proxy.options()), options, journal.handler([&](const Delivery&) {
                            disturb(proxy);
                            return Verdict::dead_letter("too much");
                          })};
    worker.start();
    EXPECT_TRUE(wait_until([&] { return proxy.has_lost(); }));
    EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; })) << heard().text();
    EXPECT_TRUE(nothing_is_pending());
    EXPECT_EQ(journal.size(), 1U);
    const RawReply letters = raw()("XRANGE", "{s}:dlq", "-", "+");
    for (const RawReply& letter : letters.elements) {
      EXPECT_EQ(letter[1].elements.size(), 16U + 8'000U);
      EXPECT_EQ(letter[1].field("dlq_id").text, "1-0");
    }
    return letters.elements.size();
  }
};

TEST_F(WorkerLargeLetter, IsThereTwiceWhereTheReplyToItsWritingIsLost) {
  EXPECT_EQ(letters_after([](Proxy& proxy) { proxy.lose_reply_to("$4\r\nXADD\r\n"); }), 2U);
}

TEST_F(WorkerLargeLetter, IsThereTwiceWhereTheConnectionIsLostBeforeTheAcknowledgement) {
  EXPECT_EQ(letters_after([](Proxy& proxy) { proxy.lose_request("\r\nwritten\r\n"); }), 2U);
}

TEST_F(WorkerLargeLetter, IsThereOnceWhereItsWritingDoesNotReachTheServer) {
  EXPECT_EQ(letters_after([](Proxy& proxy) { proxy.lose_request("$4\r\nXADD\r\n"); }), 1U);
}

}  // namespace
}  // namespace millrace::test
