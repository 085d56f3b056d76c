#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"
#include "worker/scripts.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using Payload = scripts::Burial::Payload;

class BuryScriptTest : public ::testing::Test {
 protected:
  scripts::Buried bury(Payload payload) {
    return scripts::bury(eval_, parts_.config, {.settlement = settlement_, .payload = payload});
  }
  Error refused(Payload payload) {
    try {
      bury(payload);
    } catch (const scripts::LetterRefused& refused) {
      return refused.why;
    }
    throw std::logic_error{"the letter was not refused"};
  }

  Parts parts_;
  Settlement settlement_{.kind = Settlement::Kind::kBury,
                         .work = taken_over({1, 0}, 3, {}),
                         .attempts = 5,
                         .reason = "no such card",
                         .failed = WallTime{1'700'000'000'123ms}};
  std::string reply_ = ":1\r\n";
  ScriptedEval eval_{[this](const std::string&, const Words&) { return reply_; }};
};

TEST_F(BuryScriptTest, SendsThePayloadThatIsHere) {
  settlement_.work.ticket.id = {1, 0};
  EXPECT_EQ(bury(Payload::kGiven), scripts::Buried::kBuried);
  EXPECT_EQ(eval_.scripts, Words{"bury"});
  EXPECT_EQ(eval_.args, (std::vector<Words>{{"g", "alice", "me", "1-0", "3", "5", "1700000000123",
                                             "", "no such card", "", "", "given", "f", "v"}}));
}

TEST_F(BuryScriptTest, LeavesThePayloadToTheServer) {
  settlement_.work.ticket.id = {1, 0};
  settlement_.work.first_failed = WallTime{1'600'000'000'000ms};
  parts_.config.letters.max_length = 50;
  bury(Payload::kInStream);
  EXPECT_EQ(eval_.args,
            (std::vector<Words>{{"g", "alice", "me", "1-0", "3", "5", "1700000000123",
                                 "1600000000000", "no such card", "50", "", "stream"}}));
}

TEST_F(BuryScriptTest, AcknowledgesAloneWhatIsWritten) {
  parts_.config.letters.sink = [](const DeadLetter&) {};
  bury(Payload::kWritten);
  EXPECT_EQ(eval_.args[0][9], "sink");
  EXPECT_EQ(eval_.args[0].back(), "written");
  EXPECT_EQ(eval_.keys[0].size(), 2U);
}

TEST_F(BuryScriptTest, SaysThatItIsNotOurs) {
  reply_ = ":0\r\n";
  EXPECT_EQ(bury(Payload::kGiven), scripts::Buried::kNotOurs);
}

TEST_F(BuryScriptTest, ThrowsWhyTheLetterWasRefused) {
  reply_ = "$21\r\nWRONGTYPE not a strea\r\n";
  EXPECT_EQ(refused(Payload::kGiven).code(), Error::Code::kWrongType);
  reply_ = "$10\r\nFULL there\r\n";
  const Error error = refused(Payload::kGiven);
  EXPECT_EQ(error.prefix(), "FULL");
  EXPECT_NE(std::string{error.what()}.find("{s}:dlq"), std::string::npos) << error.what();
}

TEST_F(BuryScriptTest, RefusesAnAnswerOfAnotherShape) {
  for (const std::string reply : {"*0\r\n", "$-1\r\n"}) {
    reply_ = reply;
    EXPECT_THROW(bury(Payload::kGiven), ProtocolError) << reply;
  }
}

TEST_F(BuryScriptTest, HasTheSameHeadAsALetterThatIsWrittenWithoutAScript) {
  settlement_.work.ticket.id = {1, 0};
  settlement_.work.first_failed = WallTime{1'600'000'000'000ms};
  EXPECT_EQ(scripts::letter_head(parts_.config, settlement_),
            (Words{"dlq_stream", "s", "dlq_id", "1-0", "dlq_group", "g", "dlq_consumer", "alice",
                   "dlq_attempts", "5", "dlq_failed_ms", "1700000000123", "dlq_first_failed_ms",
                   "1600000000000", "dlq_reason", "no such card"}));
  const std::string source{kBuryScript.source};
  std::size_t at = source.find("local words = {");
  const Words head = scripts::letter_head(parts_.config, settlement_);
  for (std::size_t i = 0; i < head.size(); i += 2) {
    at = source.find("'" + head[i] + "'", at);
    EXPECT_NE(at, std::string::npos) << head[i] << " in its place in common.lua";
  }
}

}  // namespace
}  // namespace millrace::detail
