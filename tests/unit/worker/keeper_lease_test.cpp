#include "support/entries.hpp"
#include "unit/worker/keeper_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using test::Ids;
using test::wait_until;

class KeeperLeaseTest : public KeeperTest {};

TEST_F(KeeperLeaseTest, RenewsNothingBeforeTheReaderHasOpenedTheGroup) {
  parts_.config.lease_renew_every = 1ms;
  running({1000, 0});
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  EXPECT_EQ(renewals(), 0U) << "the name may be another worker's";
  open();
  EXPECT_TRUE(wait_until([&] { return renewals() > 0; }));
}

TEST_F(KeeperLeaseTest, RenewsAllThatIsHeldAgainAndAgain) {
  parts_.config.lease_renew_every = 1ms;
  const Work work = running({1, 0});
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return renewals() >= 3; }));
  EXPECT_EQ(ran("hold").at(0), (Words{"g", "alice", "me", "3600000", "1-0", "1", "1", "0"}));
  EXPECT_TRUE(wait_until(
      [&] { return parts_.ledger.next_expiry() > work.leased_at + Milliseconds{30'000}; }));
  EXPECT_TRUE(wait_until([&] { return parts_.group.renewed_at() > work.leased_at; }));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
}

TEST_F(KeeperLeaseTest, CountsALeaseFromWhenItsRenewalWasSent) {
  on_the_way_ = 10s;
  const Work work = running({1, 0});
  open();
  start();
  ASSERT_TRUE(wait_until(
      [&] { return parts_.ledger.next_expiry() > work.leased_at + Milliseconds{30'000}; }));
  const TimePoint sent_before = clock_.now() - on_the_way_;
  EXPECT_LE(parts_.ledger.next_expiry(), sent_before + Milliseconds{30'000});
  EXPECT_LE(parts_.group.renewed_at(), sent_before);
}

TEST_F(KeeperLeaseTest, RenewsManyInPieces) {
  for (std::uint64_t i = 1; i <= scripts::kMostIds + 1; ++i) running({i, 0});
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return ran("hold").size() == 2; }));
  const auto holds = ran("hold");
  EXPECT_EQ(holds[0].size(), 4 + 4 * scripts::kMostIds);
  EXPECT_EQ(holds[1].size(), 4U + 4);
  EXPECT_EQ(holds[1][3], "") << "the record is renewed once";
}

TEST_F(KeeperLeaseTest, RenewsThePlaceInTheRecordThoughNothingIsHeld) {
  open();
  start();
  EXPECT_TRUE(wait_until([&] { return renewals() == 1; }));
}

TEST_F(KeeperLeaseTest, TellsWhenAPeerHasTakenAnEntry) {
  found_ = 0;
  const Work work = running({1, 0});
  const auto stop = parts_.ledger.begin_call(work.ticket, TimePoint::max());
  open();
  start();
  EXPECT_TRUE(wait_until([&] { return parts_.observer->leases_lost() == Ids{{1, 0}}; }));
  EXPECT_TRUE(stop->stop_requested());
  EXPECT_EQ(parts_.counters.leases_lost, 1U);
}

TEST_F(KeeperLeaseTest, KeepsAnEntryThatIsNoLongerInTheStream) {
  found_ = 2;
  const Work work = running({1, 0});
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return parts_.group.renewed_at() > work.leased_at; }));
  finish(2, 2);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
  EXPECT_EQ(parts_.ledger.leases().size(), 1U);
}

TEST_F(KeeperLeaseTest, AsksForRecoveryWhereTheServerHasMoreForUsThanIsKnown) {
  pending_ = 1;
  open();
  start();
  EXPECT_TRUE(wait_until([&] { return recoveries_ == 1; }));
}

TEST_F(KeeperLeaseTest, AsksForNoRecoveryWhereTheServerHasWhatIsKnown) {
  pending_ = 1;
  const Work work = running({1, 0});
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return parts_.group.renewed_at() > work.leased_at; }));
  finish(2, 2);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  EXPECT_EQ(recoveries_, 0);
}

TEST_F(KeeperLeaseTest, LeavesAloneWhatIsCountedAnew) {
  found_ = 3;
  parts_.config.lease_renew_every = 1ms;
  const TimePoint leased_at = now() - 1s;
  detail::running(parts_.ledger, work_of({1, 0}, leased_at));
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return renewals() >= 3; }));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
  EXPECT_EQ(parts_.ledger.next_expiry(), leased_at + 30s) << "nor is its lease renewed";
}

TEST_F(KeeperLeaseTest, KeepsAParkedRetryThatIsCountedAnew) {
  parts_.config.lease_renew_every = 1ms;
  open();
  start();
  fail(running({1, 0}), Settlement::Kind::kPark, 2h);
  ASSERT_TRUE(wait_until([&] { return parts_.ledger.parked().size() == 1; }));
  found_ = 3;
  const std::size_t before = renewals();
  ASSERT_TRUE(wait_until([&] { return renewals() >= before + 3; }));
  EXPECT_EQ(parts_.ledger.parked().size(), 1U);
}

TEST_F(KeeperLeaseTest, DoesNotHammerAtAGroupThatIsMissing) {
  refuse("hold", "-NOGROUP No such key 's' or consumer group 'g'\r\n");
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return renewals() == 1; }));
  finish(1, 1);
  EXPECT_TRUE(wait_until([&] { return acked_ == 1; })) << "all else goes on";
  EXPECT_FALSE(wait_until([&] { return renewals() > 1; }, 500ms)) << "it is the reader's to make";
}

TEST_F(KeeperLeaseTest, AsksForRecoveryOfWhatItLetGoOf) {
  Work queued = work_of({1, 0}, now() - 31s);
  ASSERT_TRUE(parts_.ledger.hold(queued));
  open();
  start();
  EXPECT_TRUE(wait_until([&] { return recoveries_ == 1; }))
      << "the count of what is pending does not say so while something else is held";
  EXPECT_FALSE(parts_.ledger.holds({1, 0}));
}

TEST_F(KeeperLeaseTest, EndsLeasesByItsOwnClockWhereThereIsNoServer) {
  refuses_ = true;
  const TimePoint leased_at = now() - 30s + 20ms;
  Work queued = work_of({2, 0}, leased_at);
  const Work work = detail::running(parts_.ledger, work_of({1, 0}, leased_at));
  const auto stop = parts_.ledger.begin_call(work.ticket, TimePoint::max());
  parts_.ledger.hold(queued);
  open();
  start();
  EXPECT_TRUE(wait_until([&] { return parts_.counters.leases_lost == 2; }));
  EXPECT_TRUE(wait_until([&] { return stop->stop_requested(); }));
  EXPECT_FALSE(parts_.ledger.holds({2, 0}));
}

TEST_F(KeeperLeaseTest, EndsTheLeaseOfACallThatTakesTooLong) {
  const Work work = running({1, 0});
  const auto stop = parts_.ledger.begin_call(work.ticket, now() + 5ms);
  start();
  EXPECT_TRUE(wait_until([&] { return stop->stop_requested(); }));
  EXPECT_TRUE(wait_until([&] { return parts_.observer->leases_lost() == Ids{{1, 0}}; }));
}

TEST_F(KeeperLeaseTest, KeepsRetriesParkedThatAreDueLaterThanPeersWouldTakeThem) {
  parts_.config.lease_renew_every = 1ms;
  parts_.config.min_idle = 1h;
  open();
  start();
  fail(running({1, 0}), Settlement::Kind::kPark, 2h);
  const auto count = [&] {
    const auto holds = ran("hold");
    return std::count(holds.begin(), holds.end(),
                      Words{"g", "alice", "me", "", "1-0", "1", "1", "0"});
  };
  EXPECT_TRUE(wait_until([&] { return count() >= 3; }));
  EXPECT_EQ(parts_.ledger.parked().size(), 1U);
  found_ = 0;
  EXPECT_TRUE(wait_until([&] { return parts_.ledger.parked().empty(); })) << "it is a peer's";
}

TEST_F(KeeperLeaseTest, FailsTheWorkerWhoseNameAnotherOneHasTaken) {
  refusal_ = "-SUPERSEDED a newer worker has taken the consumer name alice\r\n";
  open();
  start();
  EXPECT_TRUE(wait_until([&] { return failures_ == 1; }));
}

class KeeperSettlingTest : public KeeperTest {};

TEST_F(KeeperSettlingTest, ParksRetriesAtOnce) {
  start();
  fail(running({1, 0}), Settlement::Kind::kPark, 10s);
  EXPECT_TRUE(wait_until([&] { return parts_.ledger.parked().size() == 1; }));
}

TEST_F(KeeperSettlingTest, BuriesAtOnceAndSaysWhyItCannot) {
  buried_ = "$9\r\nFULL here\r\n";
  start();
  fail(running({1, 0}), Settlement::Kind::kBury);
  ASSERT_TRUE(wait_until([&] { return parts_.observer->lines().size() == 1; }));
  EXPECT_NE(parts_.observer->lines()[0].text.find("FULL here"), std::string::npos);
  finish(2, 2);
  EXPECT_TRUE(wait_until([&] { return acked_ == 1; })) << "acknowledgements go on";
  EXPECT_TRUE(parts_.ledger.holds({1, 0}));
}

TEST_F(KeeperSettlingTest, SettlesWhenItCanConnectAgain) {
  refuses_ = true;
  start();
  fail(running({1, 0}), Settlement::Kind::kBury);
  ASSERT_TRUE(wait_until([&] { return connects_ >= 2; }));
  refuses_ = false;
  EXPECT_TRUE(wait_until([&] { return parts_.counters.dead_lettered == 1; }));
}

class KeeperEndTest : public KeeperTest {};

TEST_F(KeeperEndTest, GivesBackWhatWasNotStarted) {
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return renewals() == 1; }));
  Work fresh = work_of({1, 0}, now());
  Work old = taken_over({2, 0}, 3, now());
  parts_.ledger.hold(fresh);
  parts_.ledger.hold(old);
  end();
  EXPECT_EQ(ran("hold").back(), (Words{"g", "alice", "me", "", "1-0", "1", "0", "3600000", "2-0",
                                       "3", "3", "3600000"}));
  EXPECT_EQ(keeper_.released(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(parts_.counters.released, 2U);
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(KeeperEndTest, SaysThatItGaveBackOnlyWhatWasOurs) {
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  found_ = 0;
  Work work = work_of({2, 0}, now());
  parts_.ledger.hold(work);
  end();
  EXPECT_TRUE(keeper_.released().empty());
  EXPECT_EQ(parts_.counters.released, 0U);
}

TEST_F(KeeperEndTest, LeavesTheGroupLast) {
  start();
  finish(1, 1);
  end();
  EXPECT_EQ(acked_, 1U);
  EXPECT_EQ(ran("leave"), (std::vector<Words>{{"g", "alice", "me"}}));
}

TEST_F(KeeperEndTest, LeavesNothingBehindAConnectionThatIsGone) {
  start();
  end(false);
  EXPECT_TRUE(ran("leave").empty());
}

TEST_F(KeeperEndTest, SettlesBeforeItLeaves) {
  start();
  ASSERT_TRUE(wait_until([&] { return connects_ == 1; }));
  parts_.ledger.fail({.kind = Settlement::Kind::kBury, .work = running({1, 0})});
  end();
  EXPECT_EQ(ran("bury").size(), 1U);
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

TEST_F(KeeperEndTest, RenewsTheLeasesOfDeferredCallsUntilTheyAreFinished) {
  parts_.config.lease_renew_every = 1ms;
  const Work work = running({1, 0});
  open();
  start();
  stop_.request_stop();
  keeper_.work_ended(true);
  const std::size_t before = renewals();
  EXPECT_TRUE(wait_until([&] { return renewals() > before + 1; }));
  EXPECT_TRUE(ran("leave").empty());
  parts_.ledger.finish(work.ticket, now());
  end();
  EXPECT_EQ(acked_, 1U);
  EXPECT_EQ(ran("leave").size(), 1U);
}

TEST_F(KeeperEndTest, WaitsForNoDeferredCallOnceItIsTold) {
  running({1, 0});
  start();
  keeper_.abandon();
  end();
  EXPECT_EQ(parts_.ledger.running(), (Ids{{1, 0}}));
}

class KeeperStaleTest : public KeeperTest {
 protected:
  static std::string consumer(const std::string& name, int pending, int idle_ms) {
    return "*6\r\n$4\r\nname\r\n$" + std::to_string(name.size()) + "\r\n" + name +
           "\r\n$7\r\npending\r\n:" + std::to_string(pending) +
           "\r\n$4\r\nidle\r\n:" + std::to_string(idle_ms) + "\r\n";
  }
};

TEST_F(KeeperStaleTest, RemovesConsumersThatHaveNothingAndAreSilentForLong) {
  parts_.config.min_idle = parts_.config.lease_renew_every = 10ms;
  consumers_ = "*4\r\n" + consumer("alice", 0, 9'999'999) + consumer("bob", 0, 9'999'999) +
               consumer("carol", 1, 9'999'999) + consumer("dave", 0, 100);
  open();
  start();
  ASSERT_TRUE(wait_until([&] { return ran("remove_consumer").size() >= 2; })) << "again and again";
  for (const Words& args : ran("remove_consumer")) EXPECT_EQ(args, (Words{"g", "bob"}));
}

TEST_F(KeeperStaleTest, LeavesThatToOthersWhereItMayNot) {
  parts_.config.min_idle = parts_.config.lease_renew_every = 1ms;
  consumers_ = "-NOPERM this user has no permissions to run the 'xinfo|consumers' command\r\n";
  start();
  finish(1, 1);
  ASSERT_TRUE(wait_until([&] { return acked_ == 1; }));
  const TimePoint later = now() + 30ms;
  ASSERT_TRUE(wait_until([&] { return now() > later; }));
  EXPECT_EQ(parts_.observer->lines().size(), 1U) << "said once:\n" << parts_.observer->text();
  EXPECT_NE(parts_.observer->text().find("XINFO CONSUMERS"), std::string::npos);
  EXPECT_NE(parts_.status.state(), WorkerState::kDegraded);
}

class KeeperPermissionTest : public KeeperTest {
 protected:
  KeeperPermissionTest() {
    parts_.config.lease_renew_every = 1ms;
    parts_.status.move_to(WorkerState::kStarting);
    parts_.status.move_to(WorkerState::kRunning);
  }
  [[nodiscard]] bool comes_to(WorkerState state) {
    return wait_until([&] { return parts_.status.state() == state; });
  }
  [[nodiscard]] bool says(const std::string& word) {
    return wait_until([&] { return parts_.observer->text().find(word) != std::string::npos; });
  }
};

TEST_F(KeeperPermissionTest, DegradesAWorkerThatMayNotRenewAndAcknowledgesAllTheSame) {
  refuse("hold", "-NOPERM User default has no permissions to run the 'xclaim' command\r\n");
  open();
  start();
  ASSERT_TRUE(comes_to(WorkerState::kDegraded));
  EXPECT_TRUE(says("XCLAIM (by script) on 's'")) << parts_.observer->text();
  finish(1, 1);
  EXPECT_TRUE(wait_until([&] { return acked_ == 1; }));
  EXPECT_EQ(parts_.status.state(), WorkerState::kDegraded);
  refuse("hold", {});
  EXPECT_TRUE(comes_to(WorkerState::kRunning));
}

TEST_F(KeeperPermissionTest, DegradesAWorkerThatMayNotAcknowledgeAndRenewsAllTheSame) {
  refuse("XACK", "-NOPERM User default has no permissions to run the 'xack' command\r\n");
  open();
  start();
  finish(1, 1);
  ASSERT_TRUE(comes_to(WorkerState::kDegraded));
  EXPECT_TRUE(says("XACK on 's'")) << parts_.observer->text();
  const std::size_t before = renewals();
  EXPECT_TRUE(wait_until([&] { return renewals() > before + 3; }));
  EXPECT_EQ(acks_tried_, 1) << "that is asked for slowly";
}

TEST_F(KeeperPermissionTest, DegradesAWorkerThatMayNotBuryAndNamesThatTooAfterAnother) {
  refuse("hold", "-NOPERM no\r\n");
  refuse("bury", "-NOPERM no\r\n");
  open();
  start();
  ASSERT_TRUE(says("XCLAIM (by script)"));
  fail(running({1, 0}), Settlement::Kind::kBury);
  EXPECT_TRUE(says("XADD (dead letter, by script)")) << parts_.observer->text();
  EXPECT_EQ(parts_.status.state(), WorkerState::kDegraded);
  refuse("hold", {});
  const std::size_t before = renewals();
  EXPECT_TRUE(wait_until([&] { return renewals() > before + 3; }));
  EXPECT_EQ(parts_.status.state(), WorkerState::kDegraded) << "the letter is refused still";
}

TEST_F(KeeperPermissionTest, DegradesAWorkerWhoseUserIsNotTaken) {
  refuse("hold", "-NOAUTH Authentication required.\r\n");
  open();
  start();
  ASSERT_TRUE(comes_to(WorkerState::kDegraded));
  EXPECT_TRUE(says("NOAUTH"));
  EXPECT_EQ(ran("hold").size(), 1U) << "that is asked for slowly";
}

}  // namespace
}  // namespace millrace::detail
