#include "conformance.hpp"

namespace millrace::test {
namespace {

class Blocking : public StreamTest {
 protected:
  /// Redis 7.0 answers a blocked client from the place where it wakes it; later servers run the
  /// command again, so its errors are the ordinary ones.
  static bool reruns_blocked_commands() {
    return !server().version().is_redis() || server().version().is_redis_from(7, 2);
  }

  std::future<EntryBatch> given_a_blocked_consumer() {
    s().ensure_group("g", GroupStart::beginning());
    auto read = consume_in_background(s(), "alice");
    EXPECT_TRUE(blocked(1));
    return read;
  }

  /// CLIENT UNBLOCK for the one client that waits.
  void unblock(const std::string& how) {
    const std::string clients = raw()("CLIENT", "LIST").text;
    std::istringstream lines{clients};
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" flags=b ") == std::string::npos) continue;
      const std::string id = line.substr(3, line.find(' ') - 3);
      EXPECT_EQ(raw()("CLIENT", "UNBLOCK", id, how), ":1");
    }
  }
};

TEST_P(Blocking, AReadOfAStreamThatIsDeletedEndsWithNoGroup) {
  auto read = given_a_blocked_consumer();
  raw()("DEL", "s");
  const auto error = thrown<NoGroupError>([&] { read.get(); });
  EXPECT_EQ(error.prefix(), reruns_blocked_commands() ? "NOGROUP" : "UNBLOCKED");
}

TEST_P(Blocking, AReadOfAServerThatIsFlushedEndsWithNoGroup) {
  auto read = given_a_blocked_consumer();
  raw()("FLUSHALL");
  EXPECT_THROW(read.get(), NoGroupError);
}

TEST_P(Blocking, AReadOfAGroupThatIsDestroyedEndsWithNoGroup) {
  auto read = given_a_blocked_consumer();
  EXPECT_TRUE(s().delete_group("g"));
  EXPECT_THROW(read.get(), NoGroupError);
}

TEST_P(Blocking, AReadOfAStreamThatIsOverwrittenEndsWithAnError) {
  auto read = given_a_blocked_consumer();
  raw()("SET", "s", "no stream");
  if (reruns_blocked_commands()) {
    EXPECT_THROW(read.get(), WrongTypeError);
  } else {
    EXPECT_THROW(read.get(), NoGroupError);
  }
  EXPECT_THROW(s().consume("g", "alice", kAllNow), WrongTypeError);
}

TEST_P(Blocking, AStreamThatIsRenamedIntoPlaceIsDelivered) {
  auto read = given_a_blocked_consumer();
  const EventStream other = stream("t");
  append(other, {{7, 0}});
  other.ensure_group("g", GroupStart::beginning());
  ASSERT_EQ(raw()("RENAME", "t", "s"), "+OK");
  EXPECT_EQ(text(read.get()), "7-0[f=v]");
}

TEST_P(Blocking, AnEntryThatIsDeletedAtOnceIsNotDelivered) {
  auto read = given_a_blocked_consumer();
  raw()("MULTI");
  raw()("XADD", "s", "1-0", "f", "v");
  raw()("XDEL", "s", "1-0");
  raw()("EXEC");
  if (reruns_blocked_commands()) {
    EXPECT_EQ(blocked_now(), "1");
    append(s(), {{2, 0}});
    EXPECT_EQ(read.get().ids(), (Ids{{2, 0}}));
  } else {
    EXPECT_TRUE(read.get().empty());
  }
}

TEST_P(Blocking, AReadThatIsUnblockedIsEmptyAndItsConnectionGoesOn) {
  auto read = given_a_blocked_consumer();
  unblock("TIMEOUT");
  EXPECT_TRUE(read.get().empty());
  append(s(), {{1, 0}});
  EXPECT_EQ(s().consume("g", "alice", kAllNow).size(), 1U);
  EXPECT_EQ(s().pool().stats().created, 1U);
}

TEST_P(Blocking, AReadThatIsUnblockedWithAnErrorLosesNeitherGroupNorConnection) {
  auto read = given_a_blocked_consumer();
  unblock("ERROR");
  const auto error = thrown<ServerError>([&] { read.get(); });
  EXPECT_EQ(error.code(), Error::Code::kServer);
  EXPECT_EQ(error.prefix(), "UNBLOCKED");
  EXPECT_TRUE(error.retryable());
  append(s(), {{1, 0}});
  EXPECT_EQ(s().consume("g", "alice", kAllNow).size(), 1U);
  EXPECT_EQ(s().pool().stats().created, 1U);
}

TEST_P(Blocking, AReadWhosePermissionIsTakenAwayEndsAtTheNextAppend) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "reader", "on", ">secret", "~*", "+@all");
  ConnectionOptions login = options(guarded);
  login.username = "reader";
  login.password = "secret";
  const EventStream stream{ConnectionPool{login}, "s"};
  stream.ensure_group("g", GroupStart::beginning());
  auto read = consume_in_background(stream, "alice");
  ASSERT_TRUE(blocked(admin, 1));

  ASSERT_EQ(admin("ACL", "SETUSER", "reader", "-xreadgroup"), "+OK");
  admin("XADD", "s", "1-0", "f", "v");

  if (reruns_blocked_commands()) {
    EXPECT_THROW(read.get(), PermissionError);
  } else {
    EXPECT_EQ(read.get().size(), 1U);
  }
}

MILLRACE_ON_BOTH_PROTOCOLS(Blocking);

}  // namespace
}  // namespace millrace::test
