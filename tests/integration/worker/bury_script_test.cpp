#include "script_fixture.hpp"

#include <filesystem>

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Payload = scripts::Burial::Payload;
using scripts::Buried;

template <typename Base>
class Burying : public Base {
 protected:
  /// Puts `1-0` aside, which was delivered so often and has these fields.
  scripts::Buried bury(std::uint64_t deliveries = 1, Payload payload = Payload::kGiven,
                       OwnedFields fields = {{"f", "v"}}) {
    const std::vector<OwnedEntry> entries{{.id = {1, 0}, .fields = std::move(fields)}};
    const EntryBatch batch = EntryBatch::of(entries);
    detail::Settlement what{.kind = detail::Settlement::Kind::kBury};
    what.work.ticket.id = {1, 0};
    what.work.entry = batch[0];
    what.work.deliveries = deliveries;
    what.work.first_failed = detail::WallTime{1500ms};
    what.attempts = 4;
    what.reason = "no such card";
    what.failed = detail::WallTime{2500ms};
    return scripts::bury(this->eval(), this->config(), {what, payload});
  }
  /// The first word of why the letter, and nothing else, was refused.
  std::string refused() {
    try {
      bury();
    } catch (const scripts::LetterRefused& refused) {
      return std::string{refused.why.prefix()};
    }
    return "it was not refused";
  }
};

using BuryScript = Burying<ScriptTest>;
using BuryScriptOnItsOwnServer = Burying<ScriptTestOnItsOwnServer>;

TEST_F(BuryScript, WritesTheLetterAndAcknowledges) {
  given_pending(2);
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_THAT(pending(), ElementsAre("2-0 alice 1 idle 0m"));
  ASSERT_EQ(letters_written(), 1);
  EXPECT_EQ(letters()[0],
            R"(*18["dlq_stream" "s" "dlq_id" "1-0" "dlq_group" "g" "dlq_consumer" "alice" )"
            R"("dlq_attempts" "4" "dlq_failed_ms" "2500" "dlq_first_failed_ms" "1500" )"
            R"("dlq_reason" "no such card" "f" "v"])");
}

TEST_F(BuryScript, LeavesWhatAReadHasBroughtAgainToWhoTakesItsReply) {
  given_pending(1);  // the first count
  EXPECT_EQ(bury(3), Buried::kCountedAnew);
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m"));
  EXPECT_EQ(letters_written(), 0);
}

TEST_F(BuryScript, PutsAsideWithoutItsFieldsWhatNeverArrivedAndHasTooMany) {
  OwnedFields fields;
  for (std::size_t i = 0; i <= scripts::kMostFields; ++i) fields.emplace_back("f", "v");
  s().add(fields, {.id = AddId::exactly({1, 0})});
  s().ensure_group("g", GroupStart::beginning());
  s().consume("g", "alice", {.block = 0ms});
  ASSERT_EQ(bury(1, Payload::kInStream, {}), Buried::kBuried);
  ASSERT_EQ(letters_written(), 1);
  EXPECT_EQ(letters()[0].elements.size(), 16U);
  EXPECT_THAT(letters()[0].field("dlq_reason").text,
              ::testing::StartsWith("no such card; it has too many fields"));
  EXPECT_EQ(raw()("XLEN", "s"), ":1") << "they are there";
  EXPECT_THAT(pending(), IsEmpty());
}

TEST_F(BuryScript, KeepsTheFieldsByteForByte) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  const OwnedFields fields{{"f", "1"}, {"f", "2"}, {"", ""}, {bytes, bytes}, {"n", "007.0"}};
  for (const auto payload : {Payload::kGiven, Payload::kInStream}) {
    raw()("DEL", "s", kLetters);
    s().add(fields, {.id = AddId::exactly({1, 0})});
    s().ensure_group("g", GroupStart::beginning());
    s().consume("g", "alice", {.block = 0ms});
    ASSERT_EQ(bury(1, payload, payload == Payload::kGiven ? fields : OwnedFields{}),
              Buried::kBuried);
    ASSERT_EQ(letters_written(), 1);
    const RawReply letter = letters()[0];
    ASSERT_EQ(letter.elements.size(), 16 + 2 * fields.size());
    for (std::size_t i = 0; i < fields.size(); ++i) {
      EXPECT_EQ(letter[16 + 2 * i].text, fields[i].first);
      EXPECT_EQ(letter[17 + 2 * i].text, fields[i].second);
    }
  }
}

TEST_F(BuryScript, PassesOnAsManyFieldsAsItIsToldToAtMost) {
  OwnedFields fields;
  for (std::size_t i = 0; i < scripts::kMostFields; ++i) fields.emplace_back("f", "v");
  given_pending(1);
  EXPECT_EQ(bury(1, Payload::kGiven, fields), Buried::kBuried);
  EXPECT_EQ(letters().at(0).elements.size(), 16 + 2 * scripts::kMostFields);
}

TEST_F(BuryScript, OnlyAcknowledgesWhereTheLetterIsThere) {
  given_pending(1);
  EXPECT_EQ(bury(1, Payload::kWritten), Buried::kBuried);
  EXPECT_THAT(pending(), IsEmpty());
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(BuryScript, BuriesNothingOfAPeers) {
  given_pending(1);
  given({1, 0}, "bob", 1, 2h);
  for (const auto payload : {Payload::kGiven, Payload::kInStream, Payload::kWritten}) {
    EXPECT_EQ(bury(1, payload), Buried::kNotOurs);
  }
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 120m"));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(BuryScript, BuriesNothingThatHasAnotherCount) {
  given_pending(1);
  given({1, 0}, "alice", 2, 2h);
  EXPECT_EQ(bury(1), Buried::kNotOurs);
  EXPECT_EQ(bury(3), Buried::kNotOurs);
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 2 idle 120m"));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(BuryScript, BuriesNothingThatWasAcknowledged) {
  given_pending(1);
  s().ack("g", {{1, 0}});
  EXPECT_EQ(bury(), Buried::kNotOurs);
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(BuryScript, NeedsTheToken) {
  given_pending(1);
  expect_needs_the_token([&] { bury(); });
}

TEST_F(BuryScript, BuriesWhatWasTrimmedWhileItIsOurs) {
  given_pending(1);
  raw()("XDEL", "s", "1-0");
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_THAT(pending(), IsEmpty());
  ASSERT_THAT(letter_ids(), ElementsAre("1-0"));
  EXPECT_EQ(letters()[0].field("f").text, "v") << "from memory";
}

TEST_F(BuryScript, BuriesWhatWasTrimmedAndHasNoOwnerToAsk) {
  given_pending(1);
  raw()("XDEL", "s", "1-0");
  s().ack("g", {{1, 0}});
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(BuryScript, LeavesWhatWasTrimmedToAPeerWhoHasIt) {
  given_pending(1);
  given({1, 0}, "bob", 1, 2h);
  raw()("XDEL", "s", "1-0");
  EXPECT_EQ(bury(), Buried::kNotOurs);
  EXPECT_THAT(pending(), ElementsAre("1-0 bob 1 idle 120m"));
  EXPECT_THAT(letters(), IsEmpty());
}

TEST_F(BuryScript, AcknowledgesNothingWhereThereIsNoRoomForTheLetter) {
  given_pending(1);
  config().letters.max_length = 2;
  for (int i = 0; i < 2; ++i) raw()("XADD", kLetters, "*", "dlq_id", "an older one");
  EXPECT_EQ(refused(), "FULL");
  EXPECT_EQ(letters_written(), 2);
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m"));
  raw()("XTRIM", kLetters, "MAXLEN", 1);
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_EQ(letters_written(), 2);
}

TEST_F(BuryScript, AcknowledgesNothingWhereTheStreamOfLettersIsNone) {
  given_pending(1);
  raw()("SET", kLetters, "a string");
  EXPECT_EQ(refused(), "WRONGTYPE");
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m"));
  raw()("DEL", kLetters);
  EXPECT_EQ(bury(), Buried::kBuried);
}

TEST_F(BuryScriptOnItsOwnServer, WritesTheLetterAlthoughTheServerIsOutOfMemory) {
  given_pending(1);
  given_no_memory();
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(BuryScriptOnItsOwnServer, AcknowledgesNothingWithoutThePermissionToWriteTheLetter) {
  given_pending(1);
  raw()("ACL", "SETUSER", "default", "resetkeys", "~s", "~{s}:millrace:*");
  EXPECT_THROW(bury(), PermissionError) << "the server refuses the script as a whole";
  raw()("ACL", "SETUSER", "default", "allkeys", "-xadd");
  EXPECT_EQ(refused(), "NOPERM");
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m"));
  EXPECT_THAT(letters(), IsEmpty());
  raw()("ACL", "SETUSER", "default", "+@all");
  EXPECT_EQ(bury(), Buried::kBuried);
}

TEST_F(BuryScriptOnItsOwnServer, AcknowledgesNothingOnAReplica) {
  given_pending(1);
  raw()("REPLICAOF", "127.0.0.1", 1);  // where nobody listens
  EXPECT_THROW(bury(), ReadOnlyError);
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m"));
  raw()("REPLICAOF", "NO", "ONE");
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

TEST_F(BuryScriptOnItsOwnServer, AcknowledgesNothingWhereTheServerCannotSave) {
  given_pending(1);
  raw()("CONFIG", "SET", "save", "3600 1");
  std::filesystem::create_directory(server().folder() / "dump.rdb");
  raw()("BGSAVE");
  ASSERT_TRUE(wait_until([&] { return raw()("SET", "x", "y").text.starts_with("MISCONF"); }));
  EXPECT_EQ(thrown<ServerError>([&] { bury(); }).prefix(), "MISCONF");
  EXPECT_THAT(pending(), ElementsAre("1-0 alice 1 idle 0m"));
  EXPECT_THAT(letters(), IsEmpty());
  raw()("CONFIG", "SET", "stop-writes-on-bgsave-error", "no");
  EXPECT_EQ(bury(), Buried::kBuried);
  EXPECT_THAT(letter_ids(), ElementsAre("1-0"));
}

}  // namespace
}  // namespace millrace::test
