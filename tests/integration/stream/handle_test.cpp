#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class Handle : public StreamTest {};

ConnectionPool pool_of_nobody() {
  ConnectionOptions options;
  options.unix_socket = "/nonexistent/socket";
  return ConnectionPool{options};
}

TEST(HandleOfNobody, IsMadeWithoutAServer) {
  const EventStream stream{pool_of_nobody(), "orders", {.claim_min_idle = 5s}};
  EXPECT_EQ(stream.key(), "orders");
  EXPECT_EQ(stream.options().claim_min_idle, 5s);
  EXPECT_EQ(stream.pool().stats().created, 0U);
}

TEST(HandleOfNobody, RefusesAnEmptyKey) {
  EXPECT_THROW(EventStream(pool_of_nobody(), ""), InvalidArgument);
}

TEST(HandleOfNobody, RefusesAMinIdleThatIsNotAboveZeroAndSaysWhich) {
  EXPECT_THROW(EventStream(pool_of_nobody(), "s", {.claim_min_idle = 0ms}), InvalidArgument);
  const auto error =
      thrown<InvalidArgument>([] { EventStream(pool_of_nobody(), "s", {.claim_min_idle = -7ms}); });
  EXPECT_THAT(error.what(), ::testing::HasSubstr("claim_min_idle"));
  EXPECT_THAT(error.what(), ::testing::HasSubstr("-7"));
}

TEST(HandleOfNobody, FailsItsCallsWithWhatItCouldNotReach) {
  const EventStream stream{pool_of_nobody(), "s"};
  const auto error = thrown<ConnectError>([&] { stream.length(); });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(error.retryable());
  EXPECT_THAT(error.what(), ::testing::HasSubstr("/nonexistent/socket"));
}

TEST_P(Handle, CopiesShareStreamAndPool) {
  const EventStream copy = s();
  append(copy, {{1, 0}});
  EXPECT_EQ(s().length(), 1U);
  EXPECT_EQ(s().pool().stats().created, 1U);
}

TEST_P(Handle, StreamsOfOnePoolShareItsConnections) {
  const ConnectionPool shared = pool();
  const EventStream a{shared, "a"};
  const EventStream b{shared, "b"};
  append(a, {{1, 0}});
  append(b, {{1, 0}, {2, 0}});
  EXPECT_EQ(a.length(), 1U);
  EXPECT_EQ(b.length(), 2U);
  EXPECT_EQ(shared.stats().created, 1U);
}

TEST_P(Handle, AKeyIsAnyBytes) {
  const std::string key{"a\0b\r\n\xff {c}", 11};
  const EventStream odd = stream(key);
  append(odd, {{1, 0}});
  EXPECT_EQ(raw()("XLEN", key), ":1");
  EXPECT_EQ(odd.length(), 1U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Handle);

}  // namespace
}  // namespace millrace::test
