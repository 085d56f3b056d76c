#include "worker/faults.hpp"

#include "protocol/server_error.hpp"
#include "support/manual_clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>

namespace millrace::detail {

void PrintTo(Remedy remedy, std::ostream* out) {
  constexpr std::array kNames{"none", "retry", "reconnect", "retry slowly", "remake", "fail"};
  *out << kNames.at(static_cast<std::size_t>(remedy));
}

namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// An error line of a server, and what helps. The lines are those of Redis 7.0 to 8.6 and Valkey.
struct Line {
  const char* text;
  Remedy remedy;
};

class RemedyForLine : public ::testing::TestWithParam<Line> {};

TEST_P(RemedyForLine, IsThatOfItsClass) {
  const Error error = server_error(GetParam().text, {.command = "XREADGROUP", .key = "s"});
  EXPECT_EQ(remedy_for(error), GetParam().remedy) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(
    , RemedyForLine,
    ::testing::Values(
        Line{"NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option",
             Remedy::kRemakeGroup},
        Line{"NOGROUP the consumer group this client was blocked on no longer exists",
             Remedy::kRemakeGroup},
        Line{"NOGROUP No such key 's' or consumer group 'g' script: 0f, on @user_script:7.",
             Remedy::kRemakeGroup},
        Line{"UNBLOCKED the stream key no longer exists", Remedy::kRemakeGroup},
        Line{"UNBLOCKED client unblocked via CLIENT UNBLOCK", Remedy::kNone},
        Line{"UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
             "replica?)",
             Remedy::kRetry},
        Line{"WRONGTYPE Operation against a key holding the wrong kind of value", Remedy::kFail},
        Line{"READONLY You can't write against a read only replica.", Remedy::kReconnect},
        Line{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
             Remedy::kRetry},
        Line{"LOADING Redis is loading the dataset in memory", Remedy::kRetry},
        Line{"BUSY Redis is busy running a script. You can only call SCRIPT KILL", Remedy::kRetry},
        Line{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to "
             "persist to disk.",
             Remedy::kRetry},
        Line{"OOM command not allowed when used memory > 'maxmemory'.", Remedy::kRetry},
        Line{"NOREPLICAS Not enough good replicas to write.", Remedy::kRetry},
        Line{"NOAUTH Authentication required.", Remedy::kRetrySlowly},
        Line{"WRONGPASS invalid username-password pair or user is disabled.", Remedy::kRetrySlowly},
        Line{"NOPERM this user has no permissions to run the 'xack' command", Remedy::kRetrySlowly},
        Line{"MOVED 5798 127.0.0.1:7001", Remedy::kReconnect},
        Line{"ASK 5798 127.0.0.1:7001", Remedy::kReconnect},
        Line{"TRYAGAIN Multiple keys request during rehashing of slot", Remedy::kReconnect},
        Line{"CLUSTERDOWN Hash slot not served", Remedy::kReconnect},
        Line{"ERR unknown command 'XREADGROUP', with args beginning with: ", Remedy::kFail},
        Line{"ERR Unknown Redis command called from script script: c, on @user_script:1.",
             Remedy::kFail},
        Line{"ERR Unknown command called from script script: on @user_script:1.", Remedy::kFail},
        Line{"SUPERSEDED a newer worker has taken the consumer name alice", Remedy::kFail},
        Line{"MINIDLE the workers of group g have a min_idle of 1 ms, this one of 2 ms",
             Remedy::kFail},
        Line{"ERR max number of clients reached", Remedy::kRetrySlowly},
        Line{"ERR something new", Remedy::kRetrySlowly},
        Line{"WHATEVER comes in years to come", Remedy::kRetry}),
    [](const auto& line) {
      const std::string text = line.param.text;
      return text.substr(0, text.find(' ')) + '_' + std::to_string(line.index);
    });

TEST(RemedyFor, BrokenConnectionsIsAnotherAttempt) {
  EXPECT_EQ(remedy_for(ConnectError{"refused"}), Remedy::kRetry);
  EXPECT_EQ(remedy_for(IoError{"closed"}), Remedy::kRetry);
  EXPECT_EQ(remedy_for(TimeoutError{"no reply"}), Remedy::kRetry);
  EXPECT_EQ(remedy_for(PoolTimeout{"no place"}), Remedy::kRetry);
}

TEST(RemedyFor, ANonsensicalReplyIsANewConnection) {
  EXPECT_EQ(remedy_for(ProtocolError{"an array, not a map"}), Remedy::kReconnect);
}

TEST(RemedyFor, WhatCanNeverWorkIsTheEnd) {
  EXPECT_EQ(remedy_for(InvalidArgument{"too long"}), Remedy::kFail);
  EXPECT_EQ(remedy_for(UnsupportedError{"too old"}), Remedy::kFail);
}

class FaultLogTest : public ::testing::Test {
 protected:
  std::optional<std::string> report(const Error& error) { return log_.report(error, clock_.now()); }

  test::ManualClock clock_;
  FaultLog log_;
};

TEST_F(FaultLogTest, SaysAFaultThatIsNewWithItsOwnText) {
  EXPECT_EQ(report(IoError{"the cable is cut"}), "the cable is cut");
}

TEST_F(FaultLogTest, SaysARepeatedFaultOnceAMinuteWithItsCount) {
  report(IoError{"the cable is cut"});
  for (int i = 0; i < 59; ++i) {
    clock_.advance(1s);
    EXPECT_EQ(report(IoError{"the cable is cut"}), std::nullopt) << i;
  }
  clock_.advance(1s);
  const auto line = report(IoError{"the cable is cut, still"});
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line, HasSubstr("the cable is cut, still"));
  EXPECT_THAT(*line, HasSubstr("60 times"));
  EXPECT_EQ(report(IoError{"the cable is cut"}), std::nullopt) << "a minute begins anew";
  clock_.advance(1min);
  EXPECT_THAT(report(IoError{"the cable is cut"}).value(), HasSubstr("2 times"));
}

TEST_F(FaultLogTest, TellsFaultsApartByClassAndFirstWord) {
  EXPECT_TRUE(report(IoError{"closed"}).has_value());
  EXPECT_TRUE(report(TimeoutError{"closed"}).has_value());
  EXPECT_TRUE(report(ServerError{"x", "BUSY"}).has_value());
  EXPECT_TRUE(report(ServerError{"x", "MISCONF"}).has_value());
  EXPECT_FALSE(report(ServerError{"another text", "BUSY"}).has_value());
}

TEST_F(FaultLogTest, IsNotTalkedIntoRepetitionByAFaultThatComesAndGoes) {
  int lines = 0;
  for (int i = 0; i < 100; ++i) {
    if (report(IoError{"closed"})) ++lines;
    if (log_.recovered()) ++lines;
    clock_.advance(100ms);
  }
  EXPECT_EQ(lines, 2) << "once that it is there, once that it is gone";
}

TEST_F(FaultLogTest, SaysThatAllIsWellOnlyAfterItSaidThatItIsNot) {
  EXPECT_EQ(log_.recovered(), std::nullopt);
  report(IoError{"closed"});
  EXPECT_TRUE(log_.recovered().has_value());
  EXPECT_EQ(log_.recovered(), std::nullopt);
}

}  // namespace
}  // namespace millrace::detail
