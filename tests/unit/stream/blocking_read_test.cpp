#include <millrace/event_stream.hpp>

#include "support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using test::Peer;
using test::ScriptedServer;

/// A read whose first connection breaks while it waits, and whose second one has nothing new.
class RepeatedRead : public ::testing::Test {
 protected:
  void read(std::chrono::milliseconds block, std::chrono::milliseconds breaks_after) {
    ScriptedServer server{[&](Peer& peer) {
      peer.expect_client_id();
      note(peer.read());
      if (peer.number() == 0) return peer.pause(breaks_after);
      peer.send("*-1\r\n");
      peer.drain();
    }};
    const ConnectionPool pool{{.port = server.port(),
                               .connect_timeout = test::kGenerous,
                               .command_timeout = test::kGenerous}};
    EXPECT_TRUE(EventStream(pool, "s").read(StreamId::min(), {.block = block}).empty());
    EXPECT_EQ(server.accepted(), 2U);
  }

  void note(const Peer::Command& command) {
    const std::lock_guard lock{mutex_};
    reads_.push_back(command);
  }

  /// What read number `index` has as BLOCK; 0: it does not wait.
  std::chrono::milliseconds block_of(std::size_t index) {
    const std::lock_guard lock{mutex_};
    const auto& words = reads_.at(index);
    const auto at = std::find(words.begin(), words.end(), "BLOCK");
    return std::chrono::milliseconds{at == words.end() ? 0 : std::stoll(*(at + 1))};
  }

 private:
  std::mutex mutex_;
  std::vector<Peer::Command> reads_;
};

// It shares the first one's deadline: with a whole block it would end as a TimeoutError.
TEST_F(RepeatedRead, WaitsForWhatIsLeftOfItsBlock) {
  read(1h, 5ms);
  EXPECT_EQ(block_of(0), 1h);
  EXPECT_LE(block_of(1), 1h - 5ms);
  EXPECT_GT(block_of(1), 0ms);
}

TEST_F(RepeatedRead, DoesNotWaitWhereNothingIsLeftOfItsBlock) {
  read(1ms, 1ms);
  EXPECT_EQ(block_of(0), 1ms);
  EXPECT_EQ(block_of(1), 0ms);
}

}  // namespace
}  // namespace millrace
