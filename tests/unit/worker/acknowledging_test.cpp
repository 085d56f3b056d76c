#include "worker/acknowledging.hpp"

#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace millrace::detail {
namespace {

using test::Ids;

class AcknowledgingTest : public ::testing::Test {
 protected:
  void finish(const Ids& ids) {
    for (const StreamId id : ids) {
      const Work work = running(parts_.ledger, work_of(id, parts_.clock.now()));
      parts_.ledger.finish(work.ticket, parts_.clock.now());
    }
  }
  static auto on(ScriptedConnection& connection) {
    return [&](const CallSpec& spec, WriteRequest write, TakeReply take) {
      return connection.pipeline(spec, write, take);
    };
  }

  Parts parts_;
};

TEST_F(AcknowledgingTest, WritesOneCommandForAll) {
  finish({{1, 0}, {2, 0}, {3, 0}});
  Acknowledging acks{parts_.shared, 2};
  EXPECT_EQ(acks.commands(), 1U);
  RequestBuffer request;
  acks.write(request);
  EXPECT_EQ(request.bytes(), wire({"XACK", "s", "g", "1-0", "2-0"}));
}

TEST_F(AcknowledgingTest, WritesNothingWhereNothingWaits) {
  Acknowledging acks{parts_.shared, 10};
  EXPECT_EQ(acks.commands(), 0U);
  RequestBuffer request;
  acks.write(request);
  EXPECT_TRUE(request.bytes().empty());
  acks.send([](const CallSpec&, WriteRequest, TakeReply) -> PipelineResult {
    ADD_FAILURE() << "there was nothing to send";
    return {};
  });
}

TEST_F(AcknowledgingTest, LetsGoOfWhatIsAnswered) {
  finish({{1, 0}, {2, 0}});
  ScriptedConnection connection{[](const Words&) { return ":2\r\n"; }};
  Acknowledging acks{parts_.shared, 10};
  acks.send(on(connection));
  EXPECT_EQ(acks.acknowledged(), 2U);
  EXPECT_EQ(parts_.ledger.size(), 0U);
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
  EXPECT_EQ(parts_.observer->acknowledged(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(parts_.observer->acknowledged_while_pending(), 2U);
}

TEST_F(AcknowledgingTest, CountsWhatWasNotPendingAsLost) {
  finish({{1, 0}, {2, 0}, {3, 0}});
  ScriptedConnection connection{[](const Words&) { return ":1\r\n"; }};
  Acknowledging{parts_.shared, 10}.send(on(connection));
  EXPECT_EQ(parts_.ledger.size(), 0U) << "there is nothing left to do about them";
  EXPECT_EQ(parts_.counters.leases_lost, 2U);
  EXPECT_EQ(parts_.observer->acknowledged_while_pending(), 1U);
}

TEST_F(AcknowledgingTest, DoesNotCountWhatItMayHaveAcknowledgedItself) {
  finish({{1, 0}, {2, 0}});
  parts_.ledger.not_acknowledged(parts_.ledger.take_acks(1));
  ScriptedConnection connection{[](const Words&) { return ":1\r\n"; }};
  Acknowledging{parts_.shared, 10}.send(on(connection));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);

  finish({{3, 0}, {4, 0}});
  parts_.ledger.not_acknowledged(parts_.ledger.take_acks(1));
  ScriptedConnection none{[](const Words&) { return ":0\r\n"; }};
  Acknowledging{parts_.shared, 10}.send(on(none));
  EXPECT_EQ(parts_.counters.leases_lost, 1U) << "of two, one was sent before";
}

TEST_F(AcknowledgingTest, HasThemWaitAgainWhereTheConnectionIsLost) {
  finish({{1, 0}});
  ScriptedConnection connection{[](const Words&) -> std::string { throw IoError{"lost"}; }};
  EXPECT_THROW((Acknowledging{parts_.shared, 10}.send(on(connection))), IoError);
  EXPECT_TRUE(parts_.ledger.acks_failing());
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
  EXPECT_TRUE(parts_.observer->acknowledged().empty());
}

TEST_F(AcknowledgingTest, HasThemWaitAgainWhereTheServerRefuses) {
  finish({{1, 0}});
  ScriptedConnection connection{[](const Words&) { return "-MISCONF cannot save\r\n"; }};
  EXPECT_THROW((Acknowledging{parts_.shared, 10}.send(on(connection))), ServerError);
  EXPECT_TRUE(parts_.ledger.acks_failing());
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
}

TEST_F(AcknowledgingTest, HasThemWaitAgainWhereNothingWasSent) {
  finish({{1, 0}});
  { const Acknowledging acks{parts_.shared, 10}; }
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
}

TEST_F(AcknowledgingTest, KeepsTheRefusalForWhoeverSharesTheRoundTrip) {
  finish({{1, 0}});
  std::optional<Acknowledging> acks{std::in_place, parts_.shared, std::size_t{10}};
  acks->settle(resp("-NOPERM no\r\n").root());
  ASSERT_TRUE(acks->error().has_value());
  EXPECT_EQ(acks->error()->code(), Error::Code::kPermission);
  acks.reset();
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
}

TEST_F(AcknowledgingTest, BelievesNoServerThatAcknowledgesMoreThanItWasTold) {
  finish({{1, 0}});
  ScriptedConnection connection{[](const Words&) { return ":1000\r\n"; }};
  Acknowledging acks{parts_.shared, 10};
  acks.send(on(connection));
  EXPECT_EQ(acks.acknowledged(), 1U);
  EXPECT_EQ(parts_.counters.leases_lost, 0U);
}

TEST_F(AcknowledgingTest, HasThemWaitAgainWhereTheReplyIsNonsense) {
  finish({{1, 0}});
  ScriptedConnection connection{[](const Words&) { return "*0\r\n"; }};
  EXPECT_THROW((Acknowledging{parts_.shared, 10}.send(on(connection))), ProtocolError);
  EXPECT_EQ(parts_.ledger.take_acks(10).ids, (Ids{{1, 0}}));
}

TEST_F(AcknowledgingTest, SendsWhatItWasGiven) {
  const Ticket ticket = running(parts_.ledger, work_of({5, 0}, parts_.clock.now())).ticket;
  AckBatch batch;
  parts_.ledger.finish_into(batch, ticket);
  ScriptedConnection connection{[](const Words&) { return ":1\r\n"; }};
  Acknowledging acks{parts_.shared, std::move(batch)};
  acks.send(on(connection));
  EXPECT_EQ(connection.sent, (std::vector<Words>{{"XACK", "s", "g", "5-0"}}));
  EXPECT_EQ(parts_.ledger.size(), 0U);
}

}  // namespace
}  // namespace millrace::detail
