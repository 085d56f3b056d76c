#include "protocol/server_error.hpp"

#include "resp.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace millrace::detail {
namespace {

using Code = Error::Code;

constexpr ErrorContext kContext{.command = "XADD", .key = "orders", .endpoint = "127.0.0.1:6379"};

TEST(ServerErrors, AreToldApartByTheirFirstWord) {
  const struct {
    const char* line;
    Code code;
    const char* prefix;
  } cases[] = {
      {"NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option",
       Code::kNoGroup, "NOGROUP"},
      {"NOGROUP the consumer group this client was blocked on no longer exists", Code::kNoGroup,
       "NOGROUP"},
      {"UNBLOCKED the stream key no longer exists", Code::kNoGroup, "UNBLOCKED"},
      {"UNBLOCKED client unblocked via CLIENT UNBLOCK", Code::kServer, "UNBLOCKED"},
      {"UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
       "replica?)",
       Code::kServer, "UNBLOCKED"},
      {"WRONGTYPE Operation against a key holding the wrong kind of value", Code::kWrongType,
       "WRONGTYPE"},
      {"READONLY You can't write against a read only replica.", Code::kReadOnly, "READONLY"},
      {"OOM command not allowed when used memory > 'maxmemory'.", Code::kOutOfMemory, "OOM"},
      {"NOAUTH Authentication required.", Code::kAuth, "NOAUTH"},
      {"WRONGPASS invalid username-password pair or user is disabled.", Code::kAuth, "WRONGPASS"},
      {"NOPERM User u has no permissions to run the 'xack' command", Code::kPermission, "NOPERM"},
      {"LOADING Redis is loading the dataset in memory", Code::kLoading, "LOADING"},
      {"LOADING Valkey is loading the dataset in memory", Code::kLoading, "LOADING"},
      {"MOVED 3999 127.0.0.1:6381", Code::kCluster, "MOVED"},
      {"ASK 3999 127.0.0.1:6381", Code::kCluster, "ASK"},
      {"TRYAGAIN Multiple keys request during rehashing of slot", Code::kCluster, "TRYAGAIN"},
      {"CLUSTERDOWN Hash slot not served", Code::kCluster, "CLUSTERDOWN"},
      {"CROSSSLOT Keys in request don't hash to the same slot", Code::kCluster, "CROSSSLOT"},
      {"BUSYGROUP Consumer Group name already exists", Code::kServer, "BUSYGROUP"},
      {"BUSY Redis is busy running a script.", Code::kServer, "BUSY"},
      {"MISCONF Redis is configured to save RDB snapshots, but", Code::kServer, "MISCONF"},
      {"MASTERDOWN Link with MASTER is down", Code::kServer, "MASTERDOWN"},
      {"NOREPLICAS Not enough good replicas to write.", Code::kServer, "NOREPLICAS"},
      {"NOSCRIPT No matching script. Please use EVAL.", Code::kServer, "NOSCRIPT"},
      {"ERR syntax error", Code::kServer, "ERR"},
      {"NOGROUPS", Code::kServer, "NOGROUPS"},
      {"", Code::kServer, ""},
  };
  for (const auto& each : cases) {
    const Error error = server_error(each.line, kContext);
    EXPECT_EQ(error.code(), each.code) << each.line;
    EXPECT_EQ(error.prefix(), each.prefix) << each.line;
    EXPECT_EQ(error.outcome(), Outcome::kNotApplied) << each.line;
  }
}

TEST(ServerErrors, OfAMissingStreamAreFoundByText) {
  for (const char* const line :
       {"ERR no such key", "ERR no such key script: 2fe12f4, on @user_script:9.",
        "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to "
        "use the MKSTREAM option to create an empty stream automatically."}) {
    const Error error = server_error(line, kContext);
    EXPECT_EQ(error.code(), Code::kNoGroup) << line;
    EXPECT_EQ(error.prefix(), "ERR") << line;
  }
}

TEST(ServerErrors, OfAForbiddenCommandInAScriptAreFoundByText) {
  const Error error = server_error(
      "ERR ACL failure in script: User u has no permissions to run the 'xtrim' command", kContext);
  EXPECT_EQ(error.code(), Code::kPermission);
  EXPECT_EQ(error.prefix(), "NOPERM");
}

TEST(ServerErrors, NameCommandKeyEndpointAndWhatToDo) {
  EXPECT_STREQ(
      server_error("OOM command not allowed when used memory > 'maxmemory'.", kContext).what(),
      "XADD on 'orders' at 127.0.0.1:6379: OOM command not allowed when used memory > "
      "'maxmemory'. (trim streams or raise the server's maxmemory)");
  EXPECT_STREQ(server_error("ERR syntax error", kContext).what(),
               "XADD on 'orders' at 127.0.0.1:6379: ERR syntax error");
}

TEST(ServerErrors, LeaveOutWhatIsNotKnown) {
  EXPECT_STREQ(server_error("ERR odd", {}).what(), "ERR odd");
  EXPECT_STREQ(server_error("ERR odd", {.command = "PING", .key = {}, .endpoint = "h:1"}).what(),
               "PING at h:1: ERR odd");
}

TEST(ServerErrors, NeverRepeatTheArgumentsOfAnUnknownCommand) {
  for (const char* const line :
       {"ERR unknown command 'XADD', with args beginning with: 'orders' '*' 'card' 'secret' ",
        "ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'u' 'secret' ",
        "ERR unknown command `XADD`, with args beginning with: `secret`, "}) {
    const std::string message = server_error(line, kContext).what();
    EXPECT_EQ(message.find("secret"), std::string::npos) << message;
    EXPECT_NE(message.find("ERR unknown command"), std::string::npos) << message;
  }
}

TEST(ServerErrors, ShowAKeyThatCannotBreakTheLine) {
  const std::string message =
      server_error("ERR odd", {.command = "XLEN", .key = "a\nb", .endpoint = "h:1"}).what();
  EXPECT_EQ(message, "XLEN on 'a\\x0ab' at h:1: ERR odd");
}

TEST(ServerErrors, TellAnUnblockedClientFromALostStream) {
  EXPECT_TRUE(
      is_client_unblock(server_error("UNBLOCKED client unblocked via CLIENT UNBLOCK", kContext)));
  EXPECT_FALSE(is_client_unblock(server_error(
      "UNBLOCKED force unblock from blocking operation, instance state changed", kContext)));
  EXPECT_FALSE(
      is_client_unblock(server_error("UNBLOCKED the stream key no longer exists", kContext)));
}

TEST(ServerErrors, ShowALineThatCannotBreakTheMessageOrFillTheLog) {
  EXPECT_STREQ(server_error("ERR a\nb", {.command = "XLEN"}).what(), "XLEN: ERR a\\x0ab");
  EXPECT_LT(std::string{server_error("ERR " + std::string(100'000, 'x'), {}).what()}.size(),
            1'100U);
}

TEST(ServerErrors, OfAReplyNameWhereItCameFrom) {
  Reply reply = resp("-ERR odd\r\n");
  EXPECT_STREQ(server_error(reply.root(), "XACK", "orders").what(), "XACK on 'orders': ERR odd");
  reply.came_from(std::make_shared<const std::string>("host:1"));
  EXPECT_STREQ(server_error(reply.root(), "XACK", "orders").what(),
               "XACK on 'orders' at host:1: ERR odd");
}

TEST(InContext, NamesCommandKeyAndEndpointOfASurprise) {
  const auto error = in_context(ProtocolError{"a count is null", Outcome::kApplied}, kContext);
  EXPECT_STREQ(error.what(), "XADD on 'orders' at 127.0.0.1:6379: a count is null");
  EXPECT_EQ(error.outcome(), Outcome::kApplied);
}

TEST(WithOutcome, SaysTheOtherEffectWhereTheMessageSaidOne) {
  constexpr std::array kAll{Outcome::kNotApplied, Outcome::kApplied, Outcome::kUnknown};
  for (const auto from : kAll) {
    const IoError error{"XADD at host:1: broken; " + std::string{effect(from)}, from};
    for (const auto to : kAll) {
      EXPECT_EQ(with_outcome(error, to).what(),
                "XADD at host:1: broken; " + std::string{effect(to)});
    }
  }
}

TEST(WithOutcome, ChangesNothingElse) {
  const Error error = server_error("BUSY Redis is busy", kContext);
  const Error changed = with_outcome(error, Outcome::kApplied);

  EXPECT_EQ(changed.outcome(), Outcome::kApplied);
  EXPECT_EQ(changed.code(), error.code());
  EXPECT_EQ(changed.prefix(), error.prefix());
  EXPECT_STREQ(changed.what(), error.what());
}

}  // namespace
}  // namespace millrace::detail
