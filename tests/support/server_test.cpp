#include "support/server_test.hpp"

#include "support/wait_until.hpp"

#include <utility>

namespace millrace::test {

ThrowawayServer& ServerTest::server() {
  static ThrowawayServer shared;
  return shared;
}

void ServerTest::SetUp() {
  // A connection that the test before this one has closed may not have been noticed yet.
  ASSERT_TRUE(wait_until([&] { return info_field(raw(), "clients", "connected_clients") == "1"; }));
  raw()("FLUSHALL");
}

RawClient& ServerTest::raw() {
  if (!raw_) raw_ = std::make_unique<RawClient>(server().options());
  return *raw_;
}

void ProtocolTest::SetUp() {
  try {
    const ConnectionPool pool{options()};
  } catch (const UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  }
  ServerTest::SetUp();
}

ConnectionOptions ProtocolTest::options() { return options(server()); }

ConnectionOptions ProtocolTest::options(const ThrowawayServer& from) {
  ConnectionOptions options = from.options();
  options.resp_version = GetParam();
  return options;
}

EventStream ProtocolTest::stream(std::string key, StreamOptions stream_options) {
  return EventStream{pool(), std::move(key), stream_options};
}

std::string protocol_name(const ::testing::TestParamInfo<int>& info) {
  return "RESP" + std::to_string(info.param);
}

}  // namespace millrace::test
