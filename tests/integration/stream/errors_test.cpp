#include "support/stream_test.hpp"

#include <functional>
#include <vector>

namespace millrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct NamedCall {
  const char* name;
  std::function<void(const EventStream&)> call;
};

constexpr StreamId kId{1, 0};

/// Everything that looks at a stream and changes nothing.
const std::vector<NamedCall> kLooks{
    {"read", [](const EventStream& s) { s.read(StreamId::min(), kAllNow); }},
    {"replay", [](const EventStream& s) { s.replay(); }},
    {"tail", [](const EventStream& s) { s.tail(); }},
    {"replay_all", [](const EventStream& s) { s.replay_all().begin(); }},
    {"follow", [](const EventStream& s) { s.follow(FollowStart::now()); }},
    {"next", [](const EventStream& s) { s.follow(FollowStart::beginning()).next(0ms); }},
    {"length", [](const EventStream& s) { s.length(); }},
    {"info", [](const EventStream& s) { s.info(); }},
    {"full_info", [](const EventStream& s) { s.full_info(); }},
    {"groups", [](const EventStream& s) { s.groups(); }},
    {"consumers", [](const EventStream& s) { s.consumers("g"); }},
    {"pending", [](const EventStream& s) { s.pending("g"); }},
    {"pending_entries", [](const EventStream& s) { s.pending_entries("g"); }},
};

/// Everything else.
const std::vector<NamedCall> kWrites{
    {"produce",
     [](const EventStream& s) {
       s.produce("t", {{"f", "v"}});
     }},
    {"add",
     [](const EventStream& s) {
       s.add({{"f", "v"}});
     }},
    {"ensure_group", [](const EventStream& s) { s.ensure_group("g", GroupStart::now()); }},
    {"delete_group", [](const EventStream& s) { s.delete_group("g"); }},
    {"set_group_position",
     [](const EventStream& s) { s.set_group_position("g", GroupStart::now()); }},
    {"create_consumer", [](const EventStream& s) { s.create_consumer("g", "a"); }},
    {"consume", [](const EventStream& s) { s.consume("g", "a", kAllNow); }},
    {"consume_own_pending", [](const EventStream& s) { s.consume_own_pending("g", "a"); }},
    {"ack", [](const EventStream& s) { s.ack("g", {kId}); }},
    {"autoclaim_page", [](const EventStream& s) { s.autoclaim_page("g", "a"); }},
    {"autoclaim", [](const EventStream& s) { s.autoclaim("g", "a"); }},
    {"claim", [](const EventStream& s) { s.claim("g", "a", 0ms, {kId}); }},
    {"claim_ids", [](const EventStream& s) { s.claim_ids("g", "a", 0ms, {kId}); }},
    {"handover_pending", [](const EventStream& s) { s.handover_pending("g", "a", "b"); }},
    {"remove_consumer", [](const EventStream& s) { s.remove_consumer("g", "a"); }},
    {"trim", [](const EventStream& s) { s.trim(Trim::max_len(0).exactly()); }},
    {"trim_safely", [](const EventStream& s) { s.trim_safely(); }},
    {"erase", [](const EventStream& s) { s.erase({kId}); }},
    {"delete_stream", [](const EventStream& s) { s.delete_stream(); }},
    {"set_last_id", [](const EventStream& s) { s.set_last_id(kId); }},
};

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
