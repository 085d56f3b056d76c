#include "net/wire_connection.hpp"

#include "memory_transport.hpp"
#include "support/manual_clock.hpp"
#include "unit/net/mapped_memory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

TEST(WireConnectionMemory, OfABigRequestIsGivenBackWithItsReply) {
  const std::string value(std::size_t{64} << 20, 'x');
  if (mapped_memory() < value.size()) GTEST_SKIP() << "this heap does not say what it has";
  test::ManualClock clock;
  MemoryTransport::State peer;
  WireConnection connection{std::make_unique<MemoryTransport>(peer, clock), "host:1", 300ms, clock};
  const auto before = mapped_memory();
  peer.incoming = {"+OK\r\n"};
  connection.call({.command = "SET"},
                  [&](RequestBuffer& request) { request.command("SET", 3).arg("k").arg(value); });
  EXPECT_GT(peer.sent.size(), value.size());
  std::string{}.swap(peer.sent);
  EXPECT_LT(mapped_memory(), before + value.size() / 2) << "an idle connection would hold it";
}

}  // namespace
}  // namespace millrace::detail
