#include "support/stream_calls.hpp"
#include "support/stream_test.hpp"

#include <vector>

namespace millrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class Errors : public StreamTest {
 protected:
  template <typename E>
  static void expect_error(const std::vector<NamedCall>& calls, const EventStream& stream,
                           std::string_view prefix) {
    for (const auto& [name, call] : calls) {
      SCOPED_TRACE(name);
      try {
        call(stream);
        ADD_FAILURE() << "no error";
      } catch (const E& error) {
        // In a script, Redis 7.0 calls a command that is forbidden an ordinary error.
        EXPECT_THAT(error.prefix(), ::testing::AnyOf(prefix, "ERR"));
        EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
      } catch (const std::exception& other) {
        ADD_FAILURE() << "another error: " << other.what();
      }
    }
  }
};

TEST_P(Errors, AKeyOfAnotherTypeIsNeverTakenForAMissingStream) {
  raw()("SET", "s", "no stream");
  expect_error<WrongTypeError>(kLooks, s(), "WRONGTYPE");
  expect_error<WrongTypeError>(kWrites, s(), "WRONGTYPE");
  EXPECT_EQ(raw()("GET", "s"), R"("no stream")");
}

TEST_P(Errors, AForbiddenCommandIsNeverTakenForAMissingStream) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "nobody", "on", ">secret", "~*", "-@all", "+ping", "+client", "+hello",
        "+eval", "+evalsha");
  ConnectionOptions login = options(guarded);
  login.username = "nobody";
  login.password = "secret";
  const EventStream stream{ConnectionPool{login}, "s"};
  expect_error<PermissionError>(kLooks, stream, "NOPERM");
  expect_error<PermissionError>(kWrites, stream, "NOPERM");
}

TEST_P(Errors, AForbiddenKeyIsNeverTakenForAMissingStream) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "nobody", "on", ">secret", "~other", "+@all");
  ConnectionOptions login = options(guarded);
  login.username = "nobody";
  login.password = "secret";
  const EventStream stream{ConnectionPool{login}, "s"};
  expect_error<PermissionError>(kLooks, stream, "NOPERM");
  expect_error<PermissionError>(kWrites, stream, "NOPERM");
}

TEST_P(Errors, APermissionErrorNamesTheCommand) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "nobody", "on", ">secret", "~*", "+@all", "-xadd");
  ConnectionOptions login = options(guarded);
  login.username = "nobody";
  login.password = "secret";
  const EventStream stream{ConnectionPool{login}, "s"};
  const auto error = thrown<PermissionError>([&] { stream.add({{"card", "hidden"}}); });
  EXPECT_FALSE(error.retryable());
  EXPECT_THAT(error.what(), HasSubstr("XADD"));
  EXPECT_THAT(error.what(), Not(HasSubstr("hidden")));
  EXPECT_THAT(error.what(), Not(HasSubstr("secret")));
}

MILLRACE_ON_BOTH_PROTOCOLS(Errors);

}  // namespace
}  // namespace millrace::test
