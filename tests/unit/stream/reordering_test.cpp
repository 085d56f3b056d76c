#include <millrace/event_stream.hpp>

#include "support/entries.hpp"
#include "support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <future>
#include <string>
#include <vector>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;

std::string read_of(const std::string& id) {
  return "*1\r\n*2\r\n$1\r\ns\r\n*1\r\n*2\r\n$3\r\n" + id + "\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
}

/// What can make a reply answer another call, or a command stand behind one that waits.
class Reordering : public ::testing::Test {
 protected:
  static EventStream stream(const ScriptedServer& server,
                            std::chrono::milliseconds command_timeout = kGenerous) {
    return EventStream{ConnectionPool{{.unix_socket = server.path(),
                                       .connect_timeout = kGenerous,
                                       .command_timeout = command_timeout}},
                       "s"};
  }

  static void expect_not_applied(const AddResult& result) {
    ASSERT_TRUE(result.error.has_value());
    EXPECT_EQ(result.error->outcome(), Outcome::kNotApplied);
  }
};

TEST_F(Reordering, DoesNotHaveAnAcknowledgementWaitBehindARead) {
  std::atomic<bool> is_reading{false};
  std::atomic<bool> is_acknowledged{false};
  ScriptedServer server{[&](Peer& peer) {
                          peer.expect_client_id();
                          if (peer.read().at(0) == "XACK") {
                            peer.send(":1\r\n");
                          } else {
                            is_reading = true;
                            peer.wait_until([&] { return is_acknowledged.load(); });
                            peer.send(read_of("2-0"));
                          }
                          peer.drain();
                        },
                        ScriptedServer::Kind::kUnix};
  const EventStream one = stream(server);
  auto found =
      std::async(std::launch::async, [&] { return text(one.consume("g", "c", {.block = 1min})); });
  EXPECT_TRUE(wait_until([&] { return is_reading.load(); }));
  EXPECT_NO_THROW(EXPECT_EQ(one.ack("g", {StreamId{1, 0}}), 1U));
  is_acknowledged = true;
  EXPECT_EQ(found.get(), "2-0[f=v]");
}

TEST_F(Reordering, HasNoCallTakeTheRestOfAReplyThatCameTooLate) {
  const std::string late = read_of("1-0");
  ScriptedServer server{[&](Peer& peer) {
                          peer.expect_client_id();
                          peer.read();
                          if (peer.number() > 0) {
                            peer.send(read_of("2-0"));
                            return peer.drain();
                          }
                          peer.send(late.substr(0, late.size() / 2));
                          if (peer.read().empty()) return;  // closed, and not asked for more
                          peer.send(late.substr(late.size() / 2));
                          peer.drain();
                        },
                        ScriptedServer::Kind::kUnix};
  const EventStream impatient = stream(server, 1s);
  EXPECT_THROW(impatient.consume("g", "c", {.block = 0ms}), TimeoutError);
  EXPECT_EQ(text(impatient.consume("g", "c", {.block = 0ms})), "2-0[f=v]");
}

/// A batch whose second entry no socket takes whole, on a connection that breaks meanwhile.
const std::vector<OwnedFields> kHalfWritten{
    {{"n", "0"}}, {{"n", std::string(std::size_t{8} << 20, 'x')}}, {{"n", "2"}}};

TEST_F(Reordering, SaysOfABatchThatWasHalfWrittenWhichEntriesMayBeThere) {
  ScriptedServer server{[](Peer& peer) {
                          peer.expect_client_id();
                          peer.expect({"XADD", "s", "*", "n", "0"});
                        },
                        ScriptedServer::Kind::kUnix};
  const auto results = stream(server).add_batch(kHalfWritten);
  ASSERT_EQ(results.size(), 3U);
  ASSERT_TRUE(results[0].error.has_value());
  EXPECT_EQ(results[0].error->outcome(), Outcome::kUnknown);
  expect_not_applied(results[1]);
  expect_not_applied(results[2]);
  EXPECT_EQ(server.accepted(), 1U) << "the first may be there, so nothing was sent again";
}

TEST_F(Reordering, KeepsTheRepliesToABatchThatWasHalfWritten) {
  ScriptedServer server{[](Peer& peer) {
                          peer.expect_client_id();
                          peer.expect({"XADD", "s", "*", "n", "0"});
                          peer.send("$3\r\n7-0\r\n");
                        },
                        ScriptedServer::Kind::kUnix};
  const auto results = stream(server).add_batch(kHalfWritten);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].id, (StreamId{7, 0}));
  expect_not_applied(results[1]);
  expect_not_applied(results[2]);
}

}  // namespace
}  // namespace millrace::test
