#include "net/wire_connection.hpp"

#include <millrace/error.hpp>

#include "memory_transport.hpp"
#include "support/manual_clock.hpp"
#include "unit/net/write_ping.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

const std::string kPing = "*1\r\n$4\r\nPING\r\n";

/// A connection whose peer and clock the test plays.
class WireConnectionTest : public ::testing::Test {
 protected:
  Reply call(CallSpec spec = {}) {
    spec.command = "PING";
    return connection.call(spec, write_ping);
  }

  PipelineResult pipeline(std::size_t commands, const CallSpec& spec = {}) {
    return connection.pipeline(
        spec,
        [commands](RequestBuffer& request) {
          for (std::size_t i = 0; i < commands; ++i) write_ping(request);
        },
        [this](std::size_t index, Reply reply) {
          EXPECT_EQ(index, texts.size());
          texts.emplace_back(reply.root().text());
        });
  }

  /// What `call` throws, which has to be an E.
  template <typename E>
  E error_of_call(CallSpec spec = {}) {
    try {
      call(std::move(spec));
    } catch (const E& error) {
      return error;
    }
    throw std::logic_error{"nothing was thrown"};
  }

  test::ManualClock clock;
  MemoryTransport::State peer;
  WireConnection connection{std::make_unique<MemoryTransport>(peer, clock), "host:1", 300ms, clock};
  std::vector<std::string> texts;  ///< Of a pipeline's replies.
};

TEST_F(WireConnectionTest, SendsACommandAndReturnsItsReply) {
  peer.incoming = {"+PONG\r\n"};
  EXPECT_EQ(call().root().text(), "PONG");
  EXPECT_EQ(peer.sent, kPing);
  EXPECT_TRUE(connection.is_open());
}

TEST_F(WireConnectionTest, ReadsAReplyThatComesInPieces) {
  peer.incoming = {"$", "4\r", "\nPO", "NG\r\n"};
  EXPECT_EQ(call().root().text(), "PONG");
}

TEST_F(WireConnectionTest, ThrowsTheServersErrorAndGoesOn) {
  peer.incoming = {"-WRONGTYPE no stream\r\n"};
  const auto error = error_of_call<WrongTypeError>({.key = "orders"});
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_NE(std::string{error.what()}.find("PING on 'orders' at host:1"), std::string::npos);
  EXPECT_TRUE(connection.is_open());
  peer.incoming = {"+PONG\r\n"};
  EXPECT_EQ(call().root().text(), "PONG");
}

TEST_F(WireConnectionTest, SaysOfEachReplyWhereItCameFrom) {
  peer.incoming = {"+PONG\r\n-ERR odd\r\n"};
  std::vector<Reply> replies;
  connection.pipeline(
      {.command = "PING"},
      [](RequestBuffer& request) {
        write_ping(request);
        write_ping(request);
      },
      [&](std::size_t, Reply reply) { replies.push_back(std::move(reply)); });
  ASSERT_EQ(replies.size(), 2U);
  for (const Reply& reply : replies) EXPECT_EQ(reply.root().endpoint(), "host:1");
}

TEST_F(WireConnectionTest, TimesOutAtItsDeadlineAndCloses) {
  const auto before = clock.now();
  const auto error = error_of_call<TimeoutError>({.key = "orders"});
  EXPECT_EQ(clock.now() - before, 300ms);
  EXPECT_EQ(error.outcome(), Outcome::kUnknown) << "it was sent";
  EXPECT_EQ(std::string{error.what()},
            "PING on 'orders' at host:1: no reply within 300 ms; it was sent and may have been "
            "applied");
  EXPECT_FALSE(connection.is_open());
  EXPECT_TRUE(peer.closed);
}

TEST_F(WireConnectionTest, WaitsForABlockingReadItsBlockTimeOnTop) {
  const auto before = clock.now();
  error_of_call<TimeoutError>({.block = 5s});
  EXPECT_EQ(clock.now() - before, 5300ms);
}

TEST_F(WireConnectionTest, HasNoDeadlineForABlockTimeWithoutEnd) {
  const auto before = clock.now();
  peer.waits.push_back([&](Interest) {
    clock.advance(std::chrono::hours{24 * 365});
    peer.incoming = {"+PONG\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(call({.block = Milliseconds::max()}).root().text(), "PONG");
  EXPECT_GT(clock.now() - before, std::chrono::hours{24});
}

TEST_F(WireConnectionTest, KeepsADeadlineThatIsGiven) {
  const auto deadline = clock.now() + 20ms;
  error_of_call<TimeoutError>({.block = 5s, .deadline = deadline});
  EXPECT_EQ(clock.now(), deadline);
}

// Each wait alone is short enough: only an absolute deadline ends this.
TEST_F(WireConnectionTest, TimesOutWhileThePeerTrickles) {
  const auto before = clock.now();
  peer.incoming = {"$1000\r\n"};
  for (int i = 0; i < 1000; ++i) {
    peer.waits.push_back([&](Interest) {
      clock.advance(50ms);
      peer.incoming.push_back("x");
      return Waited::kReady;
    });
  }
  EXPECT_THROW(call(), TimeoutError);
  EXPECT_LE(clock.now() - before, 350ms);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, TakesAReplyThatCameWhileTheProcessWasStopped) {
  peer.waits.push_back([&](Interest) {
    clock.advance(1h);
    peer.incoming = {"+PONG\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(call().root().text(), "PONG");
}

TEST_F(WireConnectionTest, IsNotUsedAgainAfterATimeout) {
  EXPECT_THROW(call(), TimeoutError);
  peer.incoming = {"+LATE\r\n"};
  const auto sent = peer.sent;
  const auto error = error_of_call<IoError>();
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(peer.sent, sent) << "nothing more was sent";
  EXPECT_FALSE(connection.is_quiet());
}

TEST_F(WireConnectionTest, ClosesWhenMoreRepliesComeThanCommandsWent) {
  peer.incoming = {"+PONG\r\n+AND THEN?\r\n"};
  EXPECT_EQ(call().root().text(), "PONG");
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, ClosesWhenAPieceOfAnotherReplyCame) {
  peer.incoming = {"+PONG\r\n$100\r\n"};
  EXPECT_EQ(call().root().text(), "PONG");
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, IsNotAppliedIfTheCommandWasNotSentWhole) {
  peer.room = kPing.size() - 1;
  const auto error = error_of_call<TimeoutError>();
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, IsUnknownIfThePeerClosesAfterTheCommandWasSent) {
  peer.ends = true;
  const auto error = error_of_call<IoError>();
  EXPECT_EQ(error.outcome(), Outcome::kUnknown);
  EXPECT_NE(std::string{error.what()}.find("the server closed the connection"), std::string::npos);
}

TEST_F(WireConnectionTest, IsUnknownIfThePeerResetsInTheMiddleOfTheReply) {
  peer.incoming = {"$10\r\nhalf"};
  peer.receive_error = ECONNRESET;
  EXPECT_EQ(error_of_call<IoError>().outcome(), Outcome::kUnknown);
}

TEST_F(WireConnectionTest, IsNotAppliedIfASendFailsBeforeTheEnd) {
  peer.room = 3;
  peer.send_error = EPIPE;
  peer.ends = true;
  EXPECT_EQ(error_of_call<IoError>().outcome(), Outcome::kNotApplied);
  EXPECT_FALSE(connection.is_open());
}

// A server that turns clients away answers before it has read what they send.
TEST_F(WireConnectionTest, ReportsWhyTheServerTurnedItAwayRatherThanABrokenPipe) {
  peer.room = 3;
  peer.send_error = EPIPE;
  peer.incoming = {"-ERR max number", " of clients reached\r\n"};
  peer.ends = true;
  const auto error = error_of_call<ServerError>();
  EXPECT_NE(std::string{error.what()}.find("max number of clients"), std::string::npos);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, TakesAnErrorThatComesBeforeTheCommandIsSentWhole) {
  peer.room = 3;
  peer.incoming = {"-ERR Protocol error: invalid bulk length\r\n"};
  EXPECT_EQ(error_of_call<ServerError>().prefix(), "ERR");
  EXPECT_FALSE(connection.is_open()) << "half a command lies in the stream";
}

TEST_F(WireConnectionTest, RefusesAReplyThatComesBeforeItsCommand) {
  peer.room = 3;
  peer.incoming = {"+OK\r\n"};
  EXPECT_EQ(error_of_call<ProtocolError>().outcome(), Outcome::kNotApplied);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, ClosesOnWhatIsNotResp) {
  peer.incoming = {"HTTP/1.1 400\r\n"};
  const auto error = error_of_call<ProtocolError>();
  EXPECT_EQ(error.outcome(), Outcome::kUnknown);
  EXPECT_NE(std::string{error.what()}.find("PING at host:1"), std::string::npos);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, GivesThePipelinesRepliesInOrderErrorsAmongThem) {
  peer.incoming = {"+a\r\n-ERR b\r", "\n+c\r\n"};
  const auto result = pipeline(3);
  EXPECT_EQ(texts, (std::vector<std::string>{"a", "ERR b", "c"}));
  EXPECT_EQ(result.replies, 3U);
  EXPECT_EQ(result.sent, 3U);
  EXPECT_FALSE(result.error);
  EXPECT_TRUE(connection.is_open());
}

TEST_F(WireConnectionTest, SaysHowFarABrokenPipelineWent) {
  peer.room = kPing.size() * 2 + 5;
  peer.incoming = {"+a\r\n"};
  const auto result = pipeline(4);
  EXPECT_EQ(result.replies, 1U);
  EXPECT_EQ(result.sent, 2U);
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->code(), Error::Code::kTimeout);
  EXPECT_EQ(result.error->outcome(), Outcome::kUnknown);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, DoesNothingForAPipelineWithoutCommands) {
  const auto result = pipeline(0);
  EXPECT_EQ(result.replies, 0U);
  EXPECT_FALSE(result.error);
  EXPECT_EQ(peer.waited, 0U);
  EXPECT_TRUE(connection.is_open());
}

// A peer that nobody reads from stops reading: it has room again only once its replies are taken.
TEST_F(WireConnectionTest, ReadsWhileItWrites) {
  constexpr std::size_t kCommands = 50;
  peer.room = kPing.size();
  std::size_t answered = 0;
  for (std::size_t i = 0; i < 2 * kCommands; ++i) {
    peer.waits.push_back([&](Interest interest) {
      EXPECT_TRUE(interest.readable);
      if (peer.incoming.empty() && answered < kCommands) {
        peer.incoming.push_back("+r\r\n");
        ++answered;
      } else {
        peer.room += kPing.size();
      }
      return Waited::kReady;
    });
    peer.waits.push_back([&](Interest) {
      peer.room += kPing.size();
      return Waited::kReady;
    });
  }
  const auto result = pipeline(kCommands);
  EXPECT_FALSE(result.error) << result.error->what();
  EXPECT_EQ(result.replies, kCommands);
}

TEST_F(WireConnectionTest, AsksForWritabilityOnlyWhileSomethingIsUnsent) {
  peer.room = 3;
  peer.waits.push_back([&](Interest interest) {
    EXPECT_TRUE(interest.writable);
    peer.room = kPing.size();
    return Waited::kReady;
  });
  peer.waits.push_back([&](Interest interest) {
    EXPECT_FALSE(interest.writable) << "would spin until the reply comes";
    peer.incoming = {"+PONG\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(call().root().text(), "PONG");
}

TEST_F(WireConnectionTest, ClosesWhenTheTakerThrowsWithRepliesOutstanding) {
  peer.incoming = {"+a\r\n+b\r\n"};
  EXPECT_THROW(connection.pipeline(
                   {},
                   [](RequestBuffer& request) {
                     write_ping(request);
                     write_ping(request);
                   },
                   [](std::size_t, Reply) { throw std::runtime_error{"no"}; }),
               std::runtime_error);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, StaysOpenWhenTheWriterThrows) {
  EXPECT_THROW(connection.call({},
                               [](RequestBuffer& request) {
                                 request.command("XADD", RequestBuffer::kMaxArguments + 1);
                               }),
               InvalidArgument);
  EXPECT_TRUE(peer.sent.empty());
  peer.incoming = {"+PONG\r\n"};
  EXPECT_EQ(call().root().text(), "PONG");
  EXPECT_EQ(peer.sent, kPing) << "nothing of the refused command is left";
}

TEST_F(WireConnectionTest, SendsNothingIfItIsAlreadyStopped) {
  std::stop_source source;
  source.request_stop();
  EXPECT_THROW(call({.stop = source.get_token()}), Interrupted);
  EXPECT_TRUE(peer.sent.empty());
  EXPECT_TRUE(connection.is_open());
}

TEST_F(WireConnectionTest, ClosesWhenItIsStoppedWhileItWaits) {
  std::stop_source source;
  peer.waits.push_back([&](Interest) {
    source.request_stop();
    return Waited::kWoken;
  });
  EXPECT_THROW(call({.block = 5s, .stop = source.get_token()}), Interrupted);
  EXPECT_EQ(peer.sent, kPing);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, IsNotEndedByAWakeUpThatIsNoStop) {
  std::stop_source source;
  peer.waits.push_back([&](Interest) { return Waited::kWoken; });
  peer.waits.push_back([&](Interest) {
    peer.incoming = {"+PONG\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(call({.stop = source.get_token()}).root().text(), "PONG");
}

TEST_F(WireConnectionTest, TakesAReplyLargerThanItsBuffer) {
  const std::string value(1 << 20, 'x');
  peer.incoming = {"$" + std::to_string(value.size()) + "\r\n" + value + "\r\n"};
  EXPECT_TRUE(call().root().text() == value);
  EXPECT_TRUE(connection.is_open());
}

TEST_F(WireConnectionTest, RunsAScriptByItsHashAndSendsItOnceWhereItIsNotKnown) {
  const Script script{.source = "return 1", .sha1 = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db"};
  const std::string_view keys[] = {"k"};
  const std::string_view args[] = {"a", "b"};
  const std::string by_hash =
      "*6\r\n$7\r\nEVALSHA\r\n$40\r\ne0e1f9fabfc9d4800c877a703b823ac0578ff8db\r\n"
      "$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nb\r\n";
  const std::string by_source =
      "*6\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n1\r\n$1\r\nk\r\n$1\r\na\r\n$1\r\nb\r\n";
  peer.incoming = {":1\r\n"};
  EXPECT_EQ(connection.eval({.command = "EVAL"}, script, keys, args).root().integer(), 1);
  EXPECT_EQ(peer.sent, by_hash);

  peer.sent.clear();
  peer.incoming = {"-NOSCRIPT No matching script. Please use EVAL.\r\n"};
  peer.waits.push_back([](Interest) { return Waited::kReady; });
  peer.waits.push_back([&](Interest) {
    peer.incoming = {":2\r\n"};
    return Waited::kReady;
  });
  EXPECT_EQ(connection.eval({.command = "EVAL"}, script, keys, args).root().integer(), 2);
  EXPECT_EQ(peer.sent, by_hash + by_source);

  peer.incoming = {"-ERR wrong\r\n"};
  EXPECT_THROW(connection.eval({.command = "EVAL"}, script, keys, args), ServerError);
}

TEST_F(WireConnectionTest, HangsUpAndTakesWhatIsSaidUntilThePeerHasClosed) {
  std::stop_source source;
  peer.waits = {[&](Interest) {
                  EXPECT_FALSE(peer.sending_finished);
                  source.request_stop();
                  return Waited::kWoken;
                },
                [&](Interest) {
                  EXPECT_TRUE(peer.sending_finished);
                  peer.incoming = {"+PONG\r\n"};
                  return Waited::kReady;
                }};
  EXPECT_EQ(call({.block = 5s, .hang_up = source.get_token()}).root().text(), "PONG");
  EXPECT_TRUE(peer.closed) << "it cannot be used again";
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, IsInterruptedWhereThePeerHasClosedAfterItHungUp) {
  std::stop_source source;
  peer.waits = {[&](Interest) {
                  source.request_stop();
                  return Waited::kWoken;
                },
                [&](Interest) {
                  peer.ends = true;
                  return Waited::kReady;
                }};
  EXPECT_THROW(call({.block = 5s, .hang_up = source.get_token()}), Interrupted);
  EXPECT_TRUE(peer.sending_finished);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, IsInterruptedWhereThePeerSaysNothingAfterItHungUp) {
  std::stop_source source;
  peer.waits = {[&](Interest) {
    source.request_stop();
    return Waited::kWoken;
  }};
  EXPECT_THROW(call({.block = 5s, .hang_up = source.get_token()}), Interrupted);
  EXPECT_FALSE(connection.is_open());
}

TEST_F(WireConnectionTest, HangsUpOnNobodyWhereItIsNotAskedTo) {
  const std::stop_source source;
  peer.incoming = {"+PONG\r\n"};
  EXPECT_EQ(call({.hang_up = source.get_token()}).root().text(), "PONG");
  EXPECT_FALSE(peer.sending_finished);
  EXPECT_TRUE(connection.is_open());
}

}  // namespace
}  // namespace millrace::detail
