#pragma once

#include <millrace/event_stream.hpp>

#include "support/raw_client.hpp"
#include "support/throwaway_server.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace millrace::test {

/// A test against a server that all tests of the program share, emptied before each. A test that
/// changes the server's configuration, stops or pauses it starts a ThrowawayServer of its own.
class ServerTest : public ::testing::Test {
 public:
  static ThrowawayServer& server();

 protected:
  void SetUp() override;
  void TearDown() override { raw_.reset(); }

  /// A connection beside the library's, to look and to meddle.
  RawClient& raw();

 private:
  std::unique_ptr<RawClient> raw_{};
};

/// The same, once for each version of the protocol. RESP3 is skipped where the library's hiredis
/// cannot read it.
class ProtocolTest : public ServerTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override;

  /// The shared server, or `from`, spoken to in this protocol.
  static ConnectionOptions options();
  static ConnectionOptions options(const ThrowawayServer& from);
  static ConnectionPool pool(PoolOptions pool = {}) { return ConnectionPool{options(), pool}; }
  static EventStream stream(std::string key = "s", StreamOptions stream_options = {});
};

/// As ProtocolTest, for commands that are sent bare: never skipped for hiredis' sake.
class BareTest : public ServerTest, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    bare_ = std::make_unique<RawClient>(server().options(), GetParam());
  }
  void TearDown() override {
    bare_.reset();
    ServerTest::TearDown();
  }

  /// Sends a command, and has its reply.
  template <typename... Words>
  RawReply bare(const Words&... words) {
    return (*bare_)(words...);
  }
  static bool resp3() { return GetParam() == 3; }

 private:
  std::unique_ptr<RawClient> bare_{};
};

std::string protocol_name(const ::testing::TestParamInfo<int>& info);

/// Puts `suite` on both protocols: `Suite.Fact/RESP2` and `Suite.Fact/RESP3`.
#define MILLRACE_ON_BOTH_PROTOCOLS(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(2, 3), ::millrace::test::protocol_name)

/// Skips the test, with the reason, on a server that is no Redis of this version or newer.
#define MILLRACE_NEEDS_REDIS(major, minor)                                             \
  if (!::millrace::test::ServerTest::server().version().is_redis_from(major, minor))   \
  GTEST_SKIP() << "needs Redis " << (major) << '.' << (minor) << " or newer; this is " \
               << ::millrace::test::ServerTest::server().version().to_string()

}  // namespace millrace::test
