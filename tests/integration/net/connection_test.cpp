#include "support/localhost.hpp"
#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <sstream>

namespace millrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Kills every connection but `admin`'s, and waits until they are gone.
void kill_all(RawClient& admin) {
  admin("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
  ASSERT_TRUE(wait_until([&] { return info_field(admin, "clients", "connected_clients") == "1"; }));
}

class Connecting : public StreamTest {
 protected:
  static ConnectionOptions with_login(const ThrowawayServer& to) {
    ConnectionOptions login = options(to);
    login.username = "worker";
    login.password = "secret";
    login.database = 3;
    login.client_name = "billing";
    return login;
  }
  /// The line of CLIENT LIST for the client of this name.
  static std::string client_line(RawClient& admin, const std::string& name) {
    std::istringstream lines{admin("CLIENT", "LIST").text};
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" name=" + name + " ") != std::string::npos) return line;
    }
    return "";
  }
};

TEST_P(Connecting, LogsInSelectsAndNamesItself) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all");
  const EventStream stream{ConnectionPool{with_login(guarded)}, "s"};
  append(stream, {{1, 0}});
  EXPECT_THAT(client_line(admin, "billing"), HasSubstr(" db=3 "));
  EXPECT_THAT(client_line(admin, "billing"), HasSubstr(" user=worker "));
  admin("SELECT", 3);
  EXPECT_EQ(admin("XLEN", "s"), ":1");
}

TEST_P(Connecting, DoesAllOfItAgainAfterItWasKilled) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "worker", "on", ">secret", "~*", "+@all");
  const EventStream stream{ConnectionPool{with_login(guarded)}, "s"};
  append(stream, {{1, 0}});
  kill_all(admin);

  append(stream, {{2, 0}});

  EXPECT_EQ(stream.length(), 2U);
  EXPECT_EQ(stream.pool().stats().created, 2U);
  EXPECT_THAT(client_line(admin, "billing"), HasSubstr(" db=3 "));
  EXPECT_THAT(client_line(admin, "billing"), HasSubstr(" user=worker "));
}

TEST_P(Connecting, HasItsTimeoutsAgainAfterItWasKilled) {
  ThrowawayServer paused;
  RawClient admin{paused.options()};
  ConnectionOptions hasty = options(paused);
  hasty.command_timeout = 300ms;
  const EventStream stream{ConnectionPool{hasty}, "s"};
  stream.length();
  kill_all(admin);
  stream.length();
  ASSERT_EQ(stream.pool().stats().created, 2U);

  paused.pause();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(thrown<TimeoutError>([&] { stream.add({{"f", "v"}}); }).outcome(), Outcome::kUnknown);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 300ms);
  EXPECT_EQ(stream.pool().stats().created, 2U) << "it was the second one that noticed";
  paused.resume();
}

TEST_P(Connecting, AsksForCredentialsEachTime) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("ACL", "SETUSER", "worker", "on", ">first", "~*", "+@all");
  std::atomic<int> asked = 0;
  ConnectionOptions login = options(guarded);
  login.credentials = [&] {
    const char* password = ++asked == 1 ? "first" : "second";
    return ConnectionOptions::Credentials{"worker", password};
  };
  const EventStream stream{ConnectionPool{login}, "s"};
  append(stream, {{1, 0}});
  admin("ACL", "SETUSER", "worker", "<first", ">second");
  kill_all(admin);
  append(stream, {{2, 0}});
  EXPECT_EQ(asked, 2);
}

TEST_P(Connecting, WithAWrongPasswordIsAnErrorThatDoesNotRepeatIt) {
  ConnectionOptions login = options();
  login.username = "nobody";
  login.password = "wrong-secret";
  const ConnectionPool pool{login};
  const auto error = thrown<AuthError>([&] { pool.ping(); });
  EXPECT_EQ(error.prefix(), "WRONGPASS");
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_FALSE(error.retryable());
  EXPECT_THAT(error.what(), Not(HasSubstr("wrong-secret")));
}

TEST_P(Connecting, WithoutAPasswordWhereOneIsNeededIsAnError) {
  ThrowawayServer guarded;
  RawClient admin{guarded.options()};
  admin("CONFIG", "SET", "requirepass", "secret");
  EXPECT_EQ(thrown<AuthError>([&] { ConnectionPool{options(guarded)}.ping(); }).prefix(), "NOAUTH");
  ConnectionOptions login = options(guarded);
  login.password = "secret";
  ConnectionPool{login}.ping();
}

TEST_P(Connecting, ToADatabaseThatIsNotThereIsAnError) {
  ConnectionOptions login = options();
  login.database = 9999;
  EXPECT_THROW(ConnectionPool{login}.ping(), ServerError);
}

TEST_P(Connecting, WorksOverTcpAsWell) {
  ThrowawayServer tcp{{.listen = ServerOptions::Listen::kTcp}};
  const EventStream stream{ConnectionPool{options(tcp)}, "s"};
  append(stream, {{1, 0}});
  EXPECT_EQ(stream.length(), 1U);
}

TEST_P(Connecting, WorksByAName) {
  if (!knows_localhost()) GTEST_SKIP() << "this machine does not know the name localhost";
  ThrowawayServer tcp{{.listen = ServerOptions::Listen::kTcp}};
  ConnectionOptions by_name = options(tcp);
  by_name.host = "localhost";
  ConnectionPool{by_name}.ping();
}

TEST_P(Connecting, WorksFromAUri) {
  const std::string version = "resp_version=" + std::to_string(GetParam());
  const auto unix_options = ConnectionOptions::from_uri("unix://" + server().options().unix_socket +
                                                        "?db=2&client_name=by-uri&" + version);
  append(EventStream{ConnectionPool{unix_options}, "s"}, {{1, 0}});
  raw()("SELECT", 2);
  EXPECT_EQ(raw()("XLEN", "s"), ":1");

  ThrowawayServer tcp{{.listen = ServerOptions::Listen::kTcp}};
  const auto tcp_options = ConnectionOptions::from_uri(
      "redis://127.0.0.1:" + std::to_string(tcp.port()) + "/1?" + version);
  append(EventStream{ConnectionPool{tcp_options}, "s"}, {{1, 0}});
  RawClient look{tcp.options()};
  look("SELECT", 1);
  EXPECT_EQ(look("XLEN", "s"), ":1");
}

TEST_P(Connecting, ToAPortWithoutAServerIsRefused) {
  ConnectionOptions nobody = options();
  nobody.unix_socket.clear();
  nobody.port = free_loopback_port();
  const auto error = thrown<ConnectError>([&] { ConnectionPool{nobody}.ping(); });
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_TRUE(error.retryable());
  EXPECT_THAT(error.what(), HasSubstr(std::to_string(nobody.port)));
}

TEST_P(Connecting, ToAServerThatSaysNothingEndsInTime) {
  ThrowawayServer silent;
  silent.pause();
  ConnectionOptions hasty = options(silent);
  hasty.connect_timeout = 200ms;
  const auto start = std::chrono::steady_clock::now();
  const auto error = thrown<Error>([&] { ConnectionPool{hasty}.ping(); });
  EXPECT_GE(std::chrono::steady_clock::now() - start, 200ms);
  EXPECT_EQ(error.code(), Error::Code::kConnect);
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
}

TEST_P(Connecting, InAHurryDoesNotHurryItsReads) {
  ConnectionOptions hasty = options();
  hasty.connect_timeout = 200ms;
  ASSERT_TRUE(wait_until([&] {
    try {
      const EventStream stream{ConnectionPool{hasty}, "s"};
      return stream.read(StreamId::min(), {.block = 1s}).empty();
    } catch (const ConnectError&) {
      return false;  // a busy machine can take longer than that to connect
    }
  }));
}

TEST_P(Connecting, AppendsGoOnAfterIdleConnectionsWereKilled) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_DFL), SIG_ERR);
  append(s(), {{1, 0}});
  kill_all(raw());
  append(s(), {{2, 0}});
  append(s(), {{3, 0}});
  EXPECT_EQ(s().length(), 3U);
}

TEST_P(Connecting, AppendsGoOnAfterIdleConnectionsOverTcpWereKilled) {
  // Here a dead connection takes one more request before it says that it is dead.
  ThrowawayServer tcp{{.listen = ServerOptions::Listen::kTcp}};
  RawClient admin{tcp.options()};
  const EventStream stream{ConnectionPool{options(tcp)}, "s"};
  append(stream, {{1, 0}});
  kill_all(admin);
  stream.add({{"f", "v"}});
  EXPECT_EQ(stream.length(), 2U);
}

TEST_P(Connecting, AppendsGoOnAfterTheServerClosedIdleConnections) {
  ThrowawayServer impatient{{.args = {"--timeout", "1"}}};
  const EventStream stream{ConnectionPool{options(impatient)}, "s"};
  append(stream, {{1, 0}});
  RawClient look{impatient.options()};
  ASSERT_TRUE(wait_until([&] { return info_field(look, "clients", "connected_clients") == "1"; }));
  append(stream, {{2, 0}});
  EXPECT_EQ(stream.length(), 2U);
  EXPECT_EQ(stream.pool().stats().created, 2U);
}

TEST_P(Connecting, AppendsGoOnAfterTheServerWasRestarted) {
  ThrowawayServer restarted;
  const EventStream stream{ConnectionPool{options(restarted)}, "s"};
  append(stream, {{1, 0}});
  restarted.kill();
  EXPECT_THROW(stream.length(), ConnectError);
  restarted.start();
  append(stream, {{2, 0}});
  EXPECT_EQ(stream.length(), 1U);  // it keeps nothing
}

TEST_P(Connecting, AReadIsRepeatedWhereItsReplyWasLost) {
  append(s(), {{1, 0}});
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream stream{ConnectionPool{through}, "s"};
  proxy.lose_reply_to("XLEN");
  EXPECT_EQ(stream.length(), 1U);
  EXPECT_TRUE(proxy.has_lost());
  proxy.lose_request("XRANGE");
  EXPECT_EQ(stream.replay().size(), 1U);
  EXPECT_TRUE(proxy.has_lost());
}

TEST_P(Connecting, AChildProcessGetsAnErrorAndItsParentKeepsItsConnection) {
  append(s(), {{1, 0}});
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      s().length();
    } catch (const Error&) {
      ::_exit(0);
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(s().length(), 1U);
  EXPECT_EQ(s().pool().stats().created, 1U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Connecting);

}  // namespace
}  // namespace millrace::test
