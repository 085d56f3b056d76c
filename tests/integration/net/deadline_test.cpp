#include "support/stream_test.hpp"

#include <sys/time.h>

#include <csignal>
#include <thread>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t alarms_left = 0;

void on_alarm(int) {
  alarms_left = alarms_left - 1;
  if (alarms_left <= 0) {
    const itimerval off{};
    ::setitimer(ITIMER_REAL, &off, nullptr);
  }
}

/// A signal every ten milliseconds, for ten seconds at most: without that end, a call that starts
/// its time-out afresh after each of them would never return, and its test never fail.
class SignalStorm {
 public:
  SignalStorm() {
    alarms_left = 1000;
    struct sigaction action {};
    action.sa_handler = on_alarm;  // without SA_RESTART: calls return early with EINTR
    ::sigaction(SIGALRM, &action, &before_);
    const itimerval every{.it_interval = {0, 10'000}, .it_value = {0, 10'000}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
  }
  ~SignalStorm() {
    const itimerval off{};
    ::setitimer(ITIMER_REAL, &off, nullptr);
    ::sigaction(SIGALRM, &before_, nullptr);
  }
  SignalStorm(const SignalStorm&) = delete;
  SignalStorm& operator=(const SignalStorm&) = delete;

 private:
  struct sigaction before_ {};
};

class Deadline : public StreamTest {
 protected:
  static EventStream hasty(const ThrowawayServer& to, std::chrono::milliseconds command_timeout) {
    ConnectionOptions hurry = options(to);
    hurry.command_timeout = command_timeout;
    EventStream stream{ConnectionPool{hurry}, "s"};
    while (!try_ping(stream)) {
    }
    return stream;
  }

  static bool try_ping(const EventStream& stream) {
    try {
      stream.pool().ping();
      return true;
    } catch (const TimeoutError&) {
      return false;  // a busy machine
    }
  }
};

TEST_P(Deadline, OfACommandIsKept) {
  ThrowawayServer silent;
  const EventStream stream = hasty(silent, 300ms);
  silent.pause();
  const auto start = Clock::now();
  const auto error = thrown<TimeoutError>([&] { stream.add({{"f", "v"}}); });
  EXPECT_GE(Clock::now() - start, 300ms);
  EXPECT_LT(Clock::now() - start, kGenerous);
  EXPECT_EQ(error.outcome(), Outcome::kUnknown);
  EXPECT_TRUE(error.retryable());
}

TEST_P(Deadline, OfABlockingReadIsItsBlockAndTheTimeOfACommand) {
  ThrowawayServer silent;
  const EventStream stream = hasty(silent, 300ms);
  silent.pause();
  const auto start = Clock::now();
  EXPECT_THROW(stream.read(StreamId::min(), {.block = 200ms}), TimeoutError);
  EXPECT_GE(Clock::now() - start, 500ms);
}

TEST_P(Deadline, IsNotStretchedByAStormOfSignals) {
  ThrowawayServer silent;
  const EventStream stream = hasty(silent, 300ms);
  silent.pause();
  const SignalStorm storm;
  const auto start = Clock::now();
  EXPECT_THROW(stream.add({{"f", "v"}}), TimeoutError);
  EXPECT_GE(Clock::now() - start, 300ms);
  EXPECT_LT(Clock::now() - start, 5s);
  EXPECT_GT(alarms_left, 0);
}

TEST_P(Deadline, OfABlockingReadIsNotCutShortByAStormOfSignals) {
  const SignalStorm storm;
  const auto start = Clock::now();
  EXPECT_TRUE(s().read(StreamId::min(), {.block = 300ms}).empty());
  EXPECT_GE(Clock::now() - start, 299ms);
}

TEST_P(Deadline, ThatPassedLeavesNoReplyForTheNextCall) {
  ThrowawayServer slow;
  const EventStream five{ConnectionPool{options(slow)}, "five"};
  for (std::uint64_t ms = 1; ms <= 5; ++ms) append(five, {{ms, 0}});
  const ConnectionPool shared = hasty(slow, 1s).pool();
  const EventStream late{shared, "five"};
  const EventStream next{shared, "none"};

  slow.pause();
  EXPECT_THROW(late.add({{"f", "v"}}), TimeoutError);
  slow.resume();

  for (int i = 0; i < 10; ++i) EXPECT_EQ(next.length(), 0U);
  EXPECT_TRUE(wait_until([&] { return five.length() == 6; }));
  EXPECT_EQ(shared.stats().open, 1U);
}

TEST_P(Deadline, OfAHugeAppendThatTheServerDoesNotTakeIsKept) {
  ThrowawayServer silent;
  const EventStream stream = hasty(silent, 500ms);
  const std::string huge(std::size_t{16} << 20, 'x');
  silent.pause();
  const auto start = Clock::now();
  const auto error = thrown<TimeoutError>([&] { stream.add({{"f", huge}}); });
  EXPECT_GE(Clock::now() - start, 500ms);
  // Not all of it was sent, so the server cannot have carried it out.
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
}

TEST_P(Deadline, OfAServerThatDiesUnderAHugeAppendDoesNotKillTheProcess) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  ThrowawayServer dying;
  const EventStream stream{ConnectionPool{options(dying)}, "s"};
  stream.pool().ping();
  const std::string huge(std::size_t{16} << 20, 'x');
  dying.pause();
  auto append = std::async(std::launch::async, [&] { stream.add({{"f", huge}}); });
  ASSERT_TRUE(wait_until([&] { return stream.pool().stats().in_use == 1; }));
  dying.kill();
  EXPECT_EQ(thrown<Error>([&] { append.get(); }).outcome(), Outcome::kNotApplied);
}

MILLRACE_ON_BOTH_PROTOCOLS(Deadline);

}  // namespace
}  // namespace millrace::test
