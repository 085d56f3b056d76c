#include "net/session.hpp"

#include <millrace/error.hpp>

#include "memory_transport.hpp"
#include "net/reply_reader.hpp"
#include "support/manual_clock.hpp"
#include "unit/protocol/resp.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

/// The set-up of one connection, whose server the test plays.
class SessionTest : public ::testing::Test {
 protected:
  void set_up() {
    set_up_session(connection, options, credentials_of(options), clock.now() + 2s, {});
  }

  /// What the set-up throws, which has to be an E.
  template <typename E>
  E error_of_set_up() {
    try {
      set_up();
    } catch (const E& error) {
      EXPECT_EQ(std::string{error.what()}.find("s3cret"), std::string::npos) << error.what();
      return error;
    }
    throw std::logic_error{"nothing was thrown"};
  }

  test::ManualClock clock;
  MemoryTransport::State peer;
  WireConnection connection{std::make_unique<MemoryTransport>(peer, clock), "host:1", 300ms, clock};
  ConnectionOptions options;
};

TEST_F(SessionTest, AsksForNothingButItsNumberByDefault) {
  peer.incoming = {":12\r\n"};
  set_up();
  EXPECT_EQ(peer.sent, wire({"CLIENT", "ID"}));
  EXPECT_EQ(connection.client_id(), 12U);
}

TEST_F(SessionTest, SendsEverythingInOneRoundTrip) {
  options.username = "me";
  options.password = "s3cret";
  options.client_name = "billing-1";
  options.database = 3;
  peer.incoming = {"+OK\r\n+OK\r\n+OK\r\n:12\r\n"};
  set_up();
  EXPECT_EQ(peer.sent, wire({"AUTH", "me", "s3cret"}) + wire({"CLIENT", "SETNAME", "billing-1"}) +
                           wire({"SELECT", "3"}) + wire({"CLIENT", "ID"}));
  EXPECT_EQ(peer.waited, 1U);
}

TEST_F(SessionTest, SignsInAsTheDefaultUserWithAPasswordAlone) {
  options.password = "s3cret";
  peer.incoming = {"+OK\r\n:1\r\n"};
  set_up();
  EXPECT_EQ(peer.sent, wire({"AUTH", "s3cret"}) + wire({"CLIENT", "ID"}));
}

TEST_F(SessionTest, SaysHelloInResp3) {
  options.resp_version = 3;
  peer.incoming = {"*0\r\n:1\r\n"};
  set_up();
  EXPECT_EQ(peer.sent, wire({"HELLO", "3"}) + wire({"CLIENT", "ID"}));
}

TEST_F(SessionTest, SignsInWithinHelloInResp3) {
  options.resp_version = 3;
  options.password = "s3cret";
  options.database = 2;
  peer.incoming = {"*0\r\n+OK\r\n:1\r\n"};
  set_up();
  EXPECT_EQ(peer.sent, wire({"HELLO", "3", "AUTH", "default", "s3cret"}) + wire({"SELECT", "2"}) +
                           wire({"CLIENT", "ID"}));
}

TEST_F(SessionTest, FallsBackToResp2WhereTheServerKnowsNoOther) {
  for (const auto* const refusal :
       {"-NOPROTO unsupported protocol version\r\n",
        "-ERR unknown command 'HELLO', with args beginning with: '3' 'AUTH' 's3cret' \r\n"}) {
    SCOPED_TRACE(refusal);
    MemoryTransport::State old;
    WireConnection fallback{std::make_unique<MemoryTransport>(old, clock), "host:1", 300ms, clock};
    options.resp_version = 3;
    options.password = "s3cret";
    old.incoming = {refusal + std::string{"-NOAUTH Authentication required.\r\n"}};
    old.waits.push_back([](Interest) { return Waited::kReady; });
    old.waits.push_back([&](Interest) {
      old.incoming = {"+OK\r\n:9\r\n"};
      return Waited::kReady;
    });
    set_up_session(fallback, options, credentials_of(options), clock.now() + 2s, {});
    EXPECT_TRUE(old.sent.ends_with(wire({"AUTH", "s3cret"}) + wire({"CLIENT", "ID"})));
    EXPECT_EQ(fallback.client_id(), 9U);
  }
}

TEST_F(SessionTest, GoesOnWithoutNameAndNumberWhereTheyAreForbidden) {
  for (const auto* const refusal :
       {"-NOPERM this user has no permissions to run the 'client|id' command\r\n",
        "-ERR unknown command 'CLIENT', with args beginning with: 'ID' \r\n",
        "-ERR unknown subcommand 'ID'. Try CLIENT HELP.\r\n"}) {
    MemoryTransport::State shy;
    WireConnection without{std::make_unique<MemoryTransport>(shy, clock), "host:1", 300ms, clock};
    options.client_name = "me";
    shy.incoming = {refusal, refusal};
    set_up_session(without, options, {}, clock.now() + 2s, {});
    EXPECT_EQ(without.client_id(), 0U);
    EXPECT_TRUE(without.is_open());
  }
}

TEST_F(SessionTest, FailsWithAuthErrorForAWrongPassword) {
  options.password = "s3cret";
  peer.incoming = {
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
      "-NOAUTH Authentication required.\r\n"};
  const auto error = error_of_set_up<AuthError>();
  EXPECT_EQ(error.prefix(), "WRONGPASS") << "what follows is only its echo";
  EXPECT_FALSE(error.retryable());
}

TEST_F(SessionTest, FailsWithAuthErrorForAMissingPassword) {
  peer.incoming = {"-NOAUTH Authentication required.\r\n"};
  EXPECT_EQ(error_of_set_up<AuthError>().prefix(), "NOAUTH");
}

TEST_F(SessionTest, FailsWithAuthErrorWhereTheServerHasNoPassword) {
  options.password = "s3cret";
  peer.incoming = {
      "-ERR AUTH <password> called without any password configured for the default user. Are you "
      "sure your configuration is correct?\r\n:1\r\n"};
  EXPECT_EQ(error_of_set_up<AuthError>().prefix(), "ERR");
}

TEST_F(SessionTest, NeverRepeatsAPasswordThatTheServerQuotes) {
  options.password = "s3cret";
  peer.incoming = {"-ERR unknown command 'AUTH', with args beginning with: 's3cret' \r\n:1\r\n"};
  error_of_set_up<AuthError>();
}

TEST_F(SessionTest, FailsWithLoadingErrorWhileTheServerLoads) {
  options.database = 1;
  peer.incoming = {"-LOADING Redis is loading the dataset in memory\r\n:1\r\n"};
  EXPECT_TRUE(error_of_set_up<LoadingError>().retryable());
}

TEST_F(SessionTest, FailsIfTheDatabaseDoesNotExist) {
  options.database = 99;
  peer.incoming = {"-ERR DB index is out of range\r\n:1\r\n"};
  const auto error = error_of_set_up<ServerError>();
  EXPECT_NE(std::string{error.what()}.find("SELECT at host:1"), std::string::npos) << error.what();
}

TEST_F(SessionTest, ShowsOtherPeoplesWordsAsAMessageCan) {
  peer.incoming = {"-ERR max number of clients\tis " + std::string(100'000, '9') + "\r\n"};
  const auto full = error_of_set_up<ConnectError>();
  EXPECT_NE(std::string{full.what()}.find("clients\\x09is 999"), std::string::npos);
  EXPECT_LT(std::string{full.what()}.size(), 300U);

  options.credentials = []() -> Credentials { throw std::runtime_error{"sealed\nvault"}; };
  try {
    credentials_of(options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ConnectError& error) {
    EXPECT_STREQ(error.what(), "the function `credentials` threw: sealed\\x0avault");
  }
}

TEST_F(SessionTest, FailsWithConnectErrorWhereTheServerIsFull) {
  for (const bool closes : {false, true}) {
    for (const auto* const password : {"", "s3cret"}) {
      MemoryTransport::State full;
      WireConnection late{std::make_unique<MemoryTransport>(full, clock), "host:1", 300ms, clock};
      full.incoming = {"-ERR max number of clients reached\r\n"};
      full.ends = closes;
      options.password = password;
      try {
        set_up_session(late, options, credentials_of(options), clock.now() + 2s, {});
        ADD_FAILURE() << "set up";
      } catch (const ConnectError& error) {
        EXPECT_EQ(std::string{error.what()},
                  "cannot connect to host:1: ERR max number of clients reached");
      }
    }
  }
}

TEST_F(SessionTest, FailsWithConnectErrorIfTheServerCloses) {
  peer.ends = true;
  const auto error = error_of_set_up<ConnectError>();
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
  EXPECT_EQ(std::string{error.what()},
            "cannot connect to host:1: the server closed the connection before it had answered");
}

TEST_F(SessionTest, FailsWithConnectErrorAtItsDeadline) {
  const auto before = clock.now();
  const auto error = error_of_set_up<ConnectError>();
  EXPECT_EQ(clock.now() - before, 2s) << "not the 300 ms of a command";
  EXPECT_NE(std::string{error.what()}.find("did not answer in time"), std::string::npos);
}

TEST_F(SessionTest, FailsWithProtocolErrorOnWhatIsNoRedis) {
  peer.incoming = {"HTTP/1.1 400 Bad Request\r\n"};
  const auto error = error_of_set_up<ProtocolError>();
  EXPECT_FALSE(error.retryable());
  EXPECT_EQ(error.outcome(), Outcome::kNotApplied) << "of the call that wanted the connection";
}

TEST(Credentials, AreTheOptionsOwn) {
  const auto credentials = credentials_of({.username = "me", .password = "pw"});
  EXPECT_EQ(credentials.username, "me");
  EXPECT_EQ(credentials.password, "pw");
}

TEST(Credentials, AreAskedForEachTime) {
  ConnectionOptions options;
  int asked = 0;
  options.credentials = [&asked] {
    return Credentials{.username = "me", .password = "pw" + std::to_string(++asked)};
  };
  EXPECT_EQ(credentials_of(options).password, "pw1");
  EXPECT_EQ(credentials_of(options).password, "pw2");
}

TEST(Credentials, AreAConnectErrorWhereTheFunctionFails) {
  ConnectionOptions options;
  options.credentials = []() -> Credentials { throw std::runtime_error{"the vault is sealed"}; };
  try {
    credentials_of(options);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const ConnectError& error) {
    EXPECT_NE(std::string{error.what()}.find("the vault is sealed"), std::string::npos);
  }
  options.credentials = []() -> Credentials { throw 5; };
  EXPECT_THROW(credentials_of(options), ConnectError);
  options.credentials = [] { return Credentials{.username = "me", .password = ""}; };
  EXPECT_THROW(credentials_of(options), ConnectError);
}

}  // namespace
}  // namespace millrace::detail
