#include "worker_test.hpp"

#include <filesystem>
#include <functional>

namespace millrace::test {
namespace {

/// A dead letter is to be written, and the server comes to refuse more than the letter.
class WorkerWaitingLetter : public WorkerTest {
 protected:
  /// `fault` comes while the handler of the only entry runs, which then gives it up. `word` is how
  /// the server refuses from then on, until `repair`.
  void waits_through(const std::function<void(RawClient&)>& fault, const std::string& word,
                     const std::function<void()>& repair) {
    append_ids(1);
    WorkerOptions options = this->options();
    options.min_idle = 1h;
    options.block = 100ms;
    options.reconnect_min = 1ms;
    options.reconnect_max = 50ms;
    Journal journal;
    ConsumerWorker worker{stream(), options, journal.handler([&](const Delivery&) {
                            RawClient operators{server().options()};
                            fault(operators);
                            return Verdict::dead_letter("no such card");
                          })};
    worker.start();
    ASSERT_TRUE(journal.wait_for_calls(1));
    ASSERT_TRUE(wait_until([&] { return heard().text().find(word) != std::string::npos; }));
    ASSERT_TRUE(wait_until([&] { return worker.state() == WorkerState::kDegraded; }));
    EXPECT_EQ(worker.stats().dead_lettered, 0U);
    EXPECT_EQ(worker.stats().in_flight, 1U);
    EXPECT_EQ(pending(), 1) << "nothing is acknowledged first";

    repair();
    EXPECT_TRUE(wait_until([&] { return worker.stats().dead_lettered == 1; })) << heard().text();
    EXPECT_TRUE(nothing_is_pending());
    EXPECT_TRUE(wait_until([&] { return worker.state() == WorkerState::kRunning; }));
    worker.stop(kGenerous);
    EXPECT_EQ(journal.size(), 1U) << "its handler is not asked again";
    const RawReply letters = raw()("XRANGE", "{s}:dlq", "-", "+");
    ASSERT_EQ(letters.elements.size(), 1U);
    EXPECT_EQ(letters[0][1].field("dlq_reason").text, "no such card");
    EXPECT_EQ(letters[0][1].field("f").text, "v");
  }
};

TEST_F(WorkerWaitingLetter, IsWrittenWhenTheServerCanSaveAgain) {
  waits_through(
      [&](RawClient& operators) {
        operators("CONFIG", "SET", "save", "3600 1");
        std::filesystem::create_directory(server().folder() / "dump.rdb");
        operators("BGSAVE");
        static_cast<void>(
            wait_until([&] { return operators("SET", "x", "y").text.starts_with("MISCONF"); }));
      },
      "MISCONF", [&] { raw()("CONFIG", "SET", "stop-writes-on-bgsave-error", "no"); });
}

TEST_F(WorkerWaitingLetter, IsWrittenWhenTheServerIsAMasterAgain) {
  waits_through([](RawClient& operators) { operators("REPLICAOF", "127.0.0.1", 1); }, "READONLY",
                [&] { raw()("REPLICAOF", "NO", "ONE"); });
}

TEST_F(WorkerWaitingLetter, IsWrittenWhenItsKeyIsAllowed) {
  waits_through(
      [](RawClient& operators) {
        operators("ACL", "SETUSER", "default", "resetkeys", "~s", "~{s}:millrace:*");
      },
      "NOPERM", [&] { raw()("ACL", "SETUSER", "default", "allkeys"); });
}

}  // namespace
}  // namespace millrace::test
