#include "conformance.hpp"

#include <sstream>

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
    std::istringstream lines{raw()("CLIENT", "LIST").text};
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" cmd=xreadgroup ") == std::string::npos) continue;
      const std::string id = line.substr(3, line.find(' ') - 3);
      ASSERT_EQ(raw()("CLIENT", "UNBLOCK", id, how), ":1");
      return;
    }
    FAIL() << "nobody waits";
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

TEST_P(Blocking, AReadThatIsUnblockedWithAnErrorIsEmptyTooAndItsConnectionGoesOn) {
  auto read = given_a_blocked_consumer();
  unblock("ERROR");
  EXPECT_TRUE(read.get().empty());
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

class BareBlocking : public BareConformanceTest {};

TEST_P(BareBlocking, AClientIsUnblockedWithNothingOrWithAnError) {
  given_three_pending();
  RawClient waiting{server().options(), GetParam()};
  const RawReply id = waiting("CLIENT", "ID");
  const auto unblock = [&](const std::string& how) {
    waiting.send("XREADGROUP", "GROUP", "g", "bob", "BLOCK", 0, "STREAMS", "s", ">");
    EXPECT_TRUE(wait_until([&] { return raw()("CLIENT", "UNBLOCK", id.integer, how) == ":1"; }));
    return waiting.receive();
  };
  EXPECT_EQ(unblock("TIMEOUT"), null_array());
  EXPECT_EQ(unblock("ERROR"), "-UNBLOCKED client unblocked via CLIENT UNBLOCK");
  EXPECT_EQ(waiting("PING"), "+PONG");
}

MILLRACE_ON_BOTH_PROTOCOLS(Blocking);
MILLRACE_ON_BOTH_PROTOCOLS(BareBlocking);

}  // namespace
}  // namespace millrace::test
