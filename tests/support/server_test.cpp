#include "support/server_test.hpp"

#include <utility>

namespace millrace::test {

ThrowawayServer& ServerTest::server() {
  static ThrowawayServer shared;
  return shared;
}

void ServerTest::SetUp() { raw()("FLUSHALL"); }

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
