#include "net/wire_connection.hpp"

#include <millrace/error.hpp>

#include "memory_transport.hpp"
#include "net/wakeup.hpp"
#include "support/manual_clock.hpp"
#include "unit/net/write_ping.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

const std::string kOnePing = "*1\r\n$4\r\nPING\r\n";

/// A conversation in which each ask for more is played.
class Converse : public ::testing::Test {
 protected:
  using More = std::function<void(RequestBuffer&)>;

  static void ping(RequestBuffer& request) { write_ping(request); }
  static void two_pings(RequestBuffer& request) {
    write_ping(request);
    write_ping(request);
  }
  static void nothing(RequestBuffer&) {}

  PipelineResult converse(std::deque<More> more, const CallSpec& spec = {.command = "PING"}) {
    return connection.converse(
        spec,
        [&](RequestBuffer& request) {
          EXPECT_EQ(request.bytes(), "") << "what was sent is gone";
          ++asked;
          if (more.empty()) return;
          const More next = std::move(more.front());
          more.pop_front();
          next(request);
        },
        [this](std::size_t index, Reply reply) {
          EXPECT_EQ(index, texts.size());
          texts.emplace_back(reply.root().text());
          kinds.push_back(reply.root().kind());
        },
        wakeup);
  }

  test::ManualClock clock;
  MemoryTransport::State peer;
  WireConnection connection{std::make_unique<MemoryTransport>(peer, clock), "host:1", 300ms, clock};
  Wakeup wakeup;
  std::size_t asked = 0;
  std::vector<std::string> texts;
  std::vector<ReplyKind> kinds;
};

TEST_F(Converse, IsOverWhenThereIsNothingMoreAndNothingOutstanding) {
  EXPECT_EQ(converse({}).sent, 0U);
  EXPECT_EQ(peer.waited, 0U);
  EXPECT_TRUE(connection.is_open());
}

TEST_F(Converse, WritesMoreWhileRepliesAreOutstanding) {
  peer.waits.push_back([&](Interest) {
    EXPECT_EQ(peer.sent, kOnePing + kOnePing + kOnePing) << "before the first reply";
    peer.incoming = {"+1\r\n+2\r\n+3\r\n"};
    return Waited::kReady;
  });
  const auto result = converse({ping, two_pings});
  EXPECT_FALSE(result.error.has_value());
  EXPECT_EQ(result.sent, 3U);
  EXPECT_EQ(result.replies, 3U);
  EXPECT_EQ(texts, (std::vector<std::string>{"1", "2", "3"}));
  EXPECT_TRUE(connection.is_open());
}

TEST_F(Converse, AsksAgainWhenItIsWoken) {
  peer.waits.push_back([&](Interest) { return Waited::kWoken; });
  peer.waits.push_back([&](Interest) {
    EXPECT_EQ(peer.sent, kOnePing + kOnePing);
    peer.incoming = {"+1\r\n+2\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(converse({ping, nothing, ping}).replies, 2U);
}

TEST_F(Converse, AsksAgainAfterReplies) {
  peer.incoming = {"+1\r\n", "+2\r\n"};
  EXPECT_EQ(converse({ping, nothing, ping}).replies, 2U);
}

TEST_F(Converse, ReadsAReplyAsItsOwnCommandSaysAfterOthersAreGone) {
  const auto ping_and_range = [](RequestBuffer& request) {
    write_ping(request);
    request.command("XRANGE", 2).answered_by(ReplyShape::kEntries).arg("k");
  };
  peer.room = 2 * kOnePing.size() + 3;
  for (const char* const reply : {"+1\r\n", "*0\r\n"}) {  // not at once: hiredis would read both
    peer.waits.push_back([&peer = peer, reply](Interest) {
      peer.incoming = {reply};
      return Waited::kReady;
    });
  }
  peer.waits.push_back([&](Interest) {
    EXPECT_EQ(kinds.size(), 2U) << "and the third command is half sent";
    peer.room = 1000;
    return Waited::kReady;
  });
  peer.waits.push_back([&](Interest) {
    peer.incoming = {"*0\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(converse({ping, ping_and_range}).replies, 3U);
  ASSERT_EQ(kinds.size(), 3U);
  EXPECT_EQ(kinds[1], ReplyKind::kArray) << "no list of entries, whatever the next one is to be";
}

TEST_F(Converse, DoesNotAskWhileItCannotSend) {
  peer.room = 3;
  peer.waits.push_back([&](Interest interest) {
    EXPECT_TRUE(interest.writable);
    EXPECT_EQ(asked, 1U);
    peer.room = 1000;
    return Waited::kReady;
  });
  peer.waits.push_back([&](Interest) {
    peer.incoming = {"+1\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(converse({ping}).replies, 1U);
}

TEST_F(Converse, GivesEachPieceItsOwnTimeOut) {
  const auto start = clock.now();
  peer.waits.push_back([&](Interest) {
    clock.advance(200ms);
    return Waited::kWoken;
  });
  peer.waits.push_back([&](Interest) {
    peer.incoming = {"+1\r\n"};
    return Waited::kReady;
  });
  const auto result = converse({ping, nothing, ping, nothing});
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->code(), Error::Code::kTimeout);
  EXPECT_EQ(clock.now() - start, 500ms) << "300 ms after the second was written";
  EXPECT_EQ(result.sent, 2U);
  EXPECT_EQ(result.replies, 1U);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(Converse, CountsWhatWasSentWholeOverAllPieces) {
  peer.room = kOnePing.size() * 2 + 3;
  peer.waits.push_back([&](Interest) {
    peer.incoming = {"+1\r\n"};
    peer.ends = true;
    return Waited::kReady;
  });
  const auto result = converse({ping, two_pings});
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->outcome(), Outcome::kUnknown);
  EXPECT_EQ(result.sent, 2U);
  EXPECT_EQ(result.replies, 1U);
}

TEST_F(Converse, HasAStopInItsResult) {
  std::stop_source stop;
  peer.room = kOnePing.size() + 3;
  peer.waits.push_back([&](Interest) {
    stop.request_stop();
    return Waited::kWoken;
  });
  const auto result = converse({two_pings}, {.command = "PING", .stop = stop.get_token()});
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->code(), Error::Code::kIo);
  EXPECT_EQ(result.error->outcome(), Outcome::kUnknown);
  EXPECT_EQ(result.sent, 1U);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(Converse, SendsNothingAfterAReplyThatNobodyAskedFor) {
  peer.incoming = {"+1\r\n+surplus\r\n"};
  const auto result = converse({ping, nothing, ping});
  EXPECT_EQ(result.replies, 1U);
  EXPECT_EQ(peer.sent, kOnePing);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(Converse, SendsNothingAfterAPartOfAReplyThatNobodyAskedFor) {
  peer.incoming = {"+1\r\n+sur"};
  EXPECT_EQ(converse({ping, nothing, ping}).replies, 1U);
  EXPECT_EQ(peer.sent, kOnePing);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(Converse, SaysThatAClosedConnectionSentNothing) {
  peer.ends = true;
  converse({ping});
  const auto result = converse({ping});
  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->outcome(), Outcome::kNotApplied);
  EXPECT_EQ(asked, 1U + 1U);  // the first time: once more when all was sent
}

}  // namespace
}  // namespace millrace::detail
