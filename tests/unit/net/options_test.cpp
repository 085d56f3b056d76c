#include "net/options.hpp"

#include <millrace/connection.hpp>
#include <millrace/error.hpp>

#include "net/reply_reader.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

template <typename Options>
std::string refusal_of(const Options& options) {
  try {
    check(options);
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ConnectionOptions, AreGoodByDefault) { EXPECT_NO_THROW(check(ConnectionOptions{})); }

TEST(ConnectionOptions, AreRefusedWithOptionValueAndRule) {
  EXPECT_EQ(refusal_of(ConnectionOptions{.host = ""}),
            "host is '': it has to be a name or an address");
  EXPECT_EQ(refusal_of(ConnectionOptions{.host = std::string{"a\0b", 3}}),
            "host is 'a\\x00b': it has to be a name or an address, without zero bytes");
  EXPECT_EQ(refusal_of(ConnectionOptions{.port = 0}), "port is 0: it has to be 1 to 65535");
  EXPECT_EQ(refusal_of(ConnectionOptions{.unix_socket = std::string{"/a\0b", 4}}),
            "unix_socket is '/a\\x00b': it has to be a path without zero bytes");
  EXPECT_EQ(refusal_of(ConnectionOptions{.client_name = "a b"}),
            "client_name is 'a b': it has to be printable ASCII without spaces and newlines, as "
            "CLIENT SETNAME wants it");
  EXPECT_EQ(refusal_of(ConnectionOptions{.connect_timeout = 0ms}),
            "connect_timeout is 0 ms: it has to be more than 0");
  EXPECT_EQ(refusal_of(ConnectionOptions{.command_timeout = -5ms}),
            "command_timeout is -5 ms: it has to be more than 0");
  for (const auto keepalive : {-1'000ms, 1ms, 999ms, 1'500ms, 32'768'000ms}) {
    EXPECT_EQ(refusal_of(ConnectionOptions{.tcp_keepalive = keepalive}),
              "tcp_keepalive is " + std::to_string(keepalive.count()) +
                  " ms: it has to be 0 (off), or whole seconds from 1 s to 32767 s");
  }
  EXPECT_EQ(refusal_of(ConnectionOptions{.resp_version = 4}),
            "resp_version is 4: it has to be 2 or 3");
}

TEST(ConnectionOptions, RefuseEveryKindOfBadClientName) {
  for (const auto* const name : {" ", "a\n", "a\tb", "\x7f", "caf\xc3\xa9"}) {
    EXPECT_NE(refusal_of(ConnectionOptions{.client_name = name}), "accepted") << name;
  }
}

TEST(ConnectionOptions, BoundTheLengthOfASocketPath) {
  EXPECT_EQ(refusal_of(ConnectionOptions{.unix_socket = std::string(106, 'a')}), "accepted");
  const auto refusal = refusal_of(ConnectionOptions{.unix_socket = std::string(107, 'a')});
  EXPECT_TRUE(refusal.ends_with("it has to be a path of at most 106 bytes, not 107")) << refusal;
}

TEST(ConnectionOptions, DoNotLookAtHostAndPortWhereASocketIsGiven) {
  EXPECT_EQ(refusal_of(ConnectionOptions{.host = "", .port = 0, .unix_socket = "/s"}), "accepted");
}

TEST(ConnectionOptions, RefuseCredentialsThatContradict) {
  const auto credentials = [] { return ConnectionOptions::Credentials{}; };
  const auto* const both =
      "credentials and username or password are given: it has to be one of them";
  EXPECT_EQ(refusal_of(ConnectionOptions{.password = "pw", .credentials = credentials}), both);
  EXPECT_EQ(refusal_of(ConnectionOptions{.username = "me", .credentials = credentials}), both);
  EXPECT_EQ(refusal_of(ConnectionOptions{.credentials = credentials}), "accepted");
  EXPECT_EQ(refusal_of(ConnectionOptions{.password = "pw"}), "accepted");
  const auto refusal = refusal_of(ConnectionOptions{.username = "s3cret"});
  EXPECT_NE(refusal.find("username is given without a password"), std::string::npos);
  EXPECT_EQ(refusal.find("s3cret"), std::string::npos) << "it may be in the wrong member";
}

TEST(ConnectionOptions, TakeResp3WhereHiredisReadsIt) {
  const ConnectionOptions options{.resp_version = 3};
  if (ReplyReader::reads_resp3()) {
    EXPECT_NO_THROW(check(options));
  } else {
    EXPECT_THROW(check(options), UnsupportedError);
  }
}

TEST(PoolOptions, AreGoodByDefault) { EXPECT_NO_THROW(check(PoolOptions{})); }

TEST(PoolOptions, AreRefusedWithOptionValueAndRule) {
  EXPECT_EQ(refusal_of(PoolOptions{.max_connections = 0}),
            "max_connections is 0: it has to be at least 1");
  EXPECT_EQ(refusal_of(PoolOptions{.max_connections = 2, .min_idle_connections = 3}),
            "min_idle_connections is 3: it has to be at most max_connections, which is 2");
  EXPECT_EQ(refusal_of(PoolOptions{.wait_timeout = -1ms}),
            "wait_timeout is -1 ms: it has to be 0 or more");
  EXPECT_EQ(refusal_of(PoolOptions{.max_idle_time = 0ms}),
            "max_idle_time is 0 ms: it has to be more than 0");
  EXPECT_EQ(refusal_of(PoolOptions{.max_lifetime = -1ms}),
            "max_lifetime is -1 ms: it has to be 0 or more");
}

TEST(PoolOptions, AndConnectionOptionsAreRefusedWhereATimeWouldOverflow) {
  const auto over = std::chrono::milliseconds{std::chrono::hours{24 * 3'653}} + 1ms;
  const auto rule = " is " + std::to_string(over.count()) + " ms: it has to be at most ten years";
  EXPECT_EQ(refusal_of(ConnectionOptions{.connect_timeout = over}), "connect_timeout" + rule);
  EXPECT_EQ(refusal_of(ConnectionOptions{.command_timeout = over}), "command_timeout" + rule);
  EXPECT_EQ(refusal_of(PoolOptions{.wait_timeout = over}), "wait_timeout" + rule);
  EXPECT_EQ(refusal_of(PoolOptions{.max_idle_time = over}), "max_idle_time" + rule);
  EXPECT_EQ(refusal_of(PoolOptions{.max_lifetime = over}), "max_lifetime" + rule);
  const auto most = over - 1ms;
  EXPECT_EQ(refusal_of(ConnectionOptions{.connect_timeout = most, .command_timeout = most}),
            "accepted");
  EXPECT_EQ(
      refusal_of(PoolOptions{.wait_timeout = most, .max_idle_time = most, .max_lifetime = most}),
      "accepted");
}

TEST(PoolOptions, TakeZeroWhereItMeansSomething) {
  EXPECT_EQ(refusal_of(PoolOptions{.wait_timeout = 0ms, .max_lifetime = 0ms}), "accepted");
}

TEST(ConnectionPool, RefusesBadOptionsWhenTheyAreGiven) {
  EXPECT_THROW((ConnectionPool{{.port = 0}}), InvalidArgument);
  EXPECT_THROW((ConnectionPool{{}, {.max_connections = 0}}), InvalidArgument);
}

TEST(ConnectionPool, DoesNoInputOrOutputWhenItIsMade) {
  const ConnectionPool pool{{.host = "no..such..host", .connect_timeout = 1ms}};
  EXPECT_EQ(pool.stats().open, 0U);
  EXPECT_THROW(pool.ping(), ConnectError);
}

TEST(ConnectionPool, IsNeverEmptyNotEvenMovedFrom) {
  ConnectionPool pool;
  const ConnectionPool moved{std::move(pool)};
  EXPECT_EQ(pool.stats().open, 0U);  // NOLINT(bugprone-use-after-move)
}

}  // namespace
}  // namespace millrace::detail
