#include "support/proxy.hpp"

#include <millrace/event_stream.hpp>

#include "support/server_test.hpp"
#include "support/wait_until.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// What a client that says `request` reads until its connection ends.
std::string all_that_comes(const Proxy& proxy, std::string_view request) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(proxy.options().port);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw std::runtime_error{"there is no proxy"};
  }
  [[maybe_unused]] const ssize_t sent = ::send(socket, request.data(), request.size(), 0);
  std::string text;
  std::array<char, 1024> bytes{};
  for (ssize_t n = 1; n > 0;) {
    n = ::recv(socket, bytes.data(), bytes.size(), 0);
    if (n > 0) text.append(bytes.data(), static_cast<std::size_t>(n));
  }
  ::close(socket);
  return text;
}

class ProxyTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    raw()("SET", "greeting", "hello");
  }
  Proxy& proxy() { return proxy_; }
  /// A connection through the proxy.
  RawClient& client() {
    if (!client_) client_ = std::make_unique<RawClient>(proxy_.options());
    return *client_;
  }
  [[nodiscard]] bool clients(std::size_t count) {
    return wait_until(
        [&] { return info_field(raw(), "clients", "connected_clients") == std::to_string(count); });
  }

 private:
  Proxy proxy_{server()};
  std::unique_ptr<RawClient> client_{};
};

TEST_F(ProxyTest, CarriesBytesBothWays) {
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  const std::string large(1'000'000, 'x');
  EXPECT_EQ(client()("SET", "k", large), "+OK");
  EXPECT_EQ(client()("GET", "k").text, large);
  EXPECT_EQ(proxy().accepted(), 1U);
  EXPECT_FALSE(proxy().has_lost());
}

TEST_F(ProxyTest, IsReachedByTcp) {
  EXPECT_EQ(proxy().options().unix_socket, "");
  EXPECT_NE(proxy().options().port, 0U);
}

TEST_F(ProxyTest, LosesTheReplyToACommandThatIsCarriedOut) {
  proxy().lose_reply_to("INCR", 2);
  EXPECT_EQ(client()("INCR", "n"), ":1");
  EXPECT_FALSE(proxy().has_lost());
  EXPECT_THROW(client()("INCR", "n"), std::runtime_error);
  EXPECT_TRUE(proxy().has_lost());
  EXPECT_EQ(raw()("GET", "n"), "\"2\"");
}

TEST_F(ProxyTest, LosesARequest) {
  proxy().lose_request("INCR");
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  EXPECT_THROW(client()("INCR", "n"), std::runtime_error);
  EXPECT_TRUE(proxy().has_lost());
  EXPECT_EQ(raw()("GET", "n"), "$-1");
}

TEST_F(ProxyTest, CutsAReplyInTheMiddle) {
  proxy().truncate_reply_to("GET", 6);
  EXPECT_EQ(all_that_comes(proxy(), "GET greeting\r\n"), "$5\r\nhe");
  EXPECT_TRUE(proxy().has_lost());
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
}

TEST_F(ProxyTest, CutsTheFirstReplyThatIsLongEnough) {
  proxy().truncate_reply_to("", 20);
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  EXPECT_FALSE(proxy().has_lost());
  EXPECT_THROW(client()("ECHO", std::string(20, 'x')), std::runtime_error);
  EXPECT_TRUE(proxy().has_lost());
}

TEST_F(ProxyTest, CutsTheReplyOfAnotherConnectionIfTheFirstOneEnds) {
  proxy().truncate_reply_to("", 20);
  {
    RawClient first{proxy().options()};
    EXPECT_EQ(first("GET", "greeting"), "\"hello\"");
    ASSERT_TRUE(clients(2));
  }
  ASSERT_TRUE(clients(1));
  EXPECT_THROW(client()("ECHO", std::string(20, 'x')), std::runtime_error);
  EXPECT_TRUE(proxy().has_lost());
}

TEST_F(ProxyTest, DropsAReplyAndKeepsTheConnection) {
  proxy().drop_reply_to("INCR");
  client().send("INCR", "n");
  ASSERT_TRUE(wait_until([&] { return proxy().has_lost(); }));
  EXPECT_EQ(raw()("GET", "n"), "\"1\"");
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
}

TEST_F(ProxyTest, DropsARequestAndKeepsTheConnection) {
  proxy().drop_request("INCR");
  client().send("INCR", "n");
  ASSERT_TRUE(wait_until([&] { return proxy().has_lost(); }));
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  EXPECT_EQ(raw()("GET", "n"), "$-1");
}

TEST_F(ProxyTest, DeliversARequestLongAfterItsConnectionBroke) {
  proxy().detain_request("INCR");
  EXPECT_THROW(client()("INCR", "n"), std::runtime_error);
  EXPECT_TRUE(proxy().has_lost());
  EXPECT_EQ(raw()("GET", "n"), "$-1");
  EXPECT_EQ(proxy().deliver(), ":1\r\n");
  EXPECT_EQ(raw()("GET", "n"), "\"1\"");
  EXPECT_EQ(proxy().deliver(), "") << "once";
}

TEST_F(ProxyTest, DelaysAReply) {
  proxy().delay_reply_to("GET", 100ms);
  const auto start = Clock::now();
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  EXPECT_GE(Clock::now() - start, 100ms);
  EXPECT_TRUE(proxy().has_lost());
}

TEST_F(ProxyTest, DelaysEveryReplyUntilToldOtherwise) {
  proxy().delay_replies(50ms);
  const auto start = Clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  EXPECT_GE(Clock::now() - start, 150ms);
  // What is on its way is not overtaken.
  client().send("ECHO", "first");
  ASSERT_TRUE(wait_until(
      [&] { return raw()("INFO", "commandstats").text.find("echo") != std::string::npos; }));
  proxy().delay_replies(0ms);
  client().send("ECHO", "second");
  EXPECT_EQ(client().receive(), "\"first\"");
  EXPECT_EQ(client().receive(), "\"second\"");
}

TEST_F(ProxyTest, SendsWhatIsLateBeforeItCloses) {
  proxy().delay_replies(50ms);
  EXPECT_EQ(all_that_comes(proxy(), "QUIT\r\n"), "+OK\r\n");
}

TEST_F(ProxyTest, AnswersWithAnErrorInPlaceOfTheServer) {
  proxy().answer_with_error("INCR", "OOM command not allowed");
  client().send("INCR", "n");
  EXPECT_EQ(client().receive(), "-OOM command not allowed");
  EXPECT_EQ(client()("INCR", "n"), ":1");
}

TEST_F(ProxyTest, AnswersEachCommandThatCameInOnePieceWithTheError) {
  proxy().answer_with_error("XADD", "LOADING the dataset");
  const EventStream stream{ConnectionPool{proxy().options()}, "s"};
  const std::vector<OwnedFields> entries(3, OwnedFields{{"f", "*3\r\n"}});
  const auto results = stream.add_batch(entries);
  ASSERT_EQ(results.size(), 3U);
  for (const AddResult& result : results) {
    ASSERT_TRUE(result.error);
    EXPECT_EQ(result.error->prefix(), "LOADING");
  }
  EXPECT_EQ(stream.length(), 0U);
}

TEST_F(ProxyTest, LeavesTheServersEndHalfOpen) {
  client().send("BLPOP", "list", 0);
  ASSERT_TRUE(wait_until([&] { return info_field(raw(), "clients", "blocked_clients") == "1"; }));
  proxy().half_open(Proxy::End::kServer);
  EXPECT_TRUE(client().is_closed_by_server());
  EXPECT_EQ(raw()("LPUSH", "list", "lost"), ":1");
  EXPECT_EQ(raw()("LLEN", "list"), ":0");  // it was given to nobody
  EXPECT_TRUE(clients(2));
  proxy().cut();
  EXPECT_TRUE(clients(1));
}

TEST_F(ProxyTest, LeavesTheClientsEndHalfOpen) {
  EXPECT_EQ(client()("GET", "greeting"), "\"hello\"");
  proxy().half_open(Proxy::End::kClient);
  ASSERT_TRUE(clients(1));
  client().send("INCR", "n");  // nobody minds
  EXPECT_EQ(raw()("GET", "n"), "$-1");
  proxy().cut();
  EXPECT_TRUE(client().is_closed_by_server());
}

TEST_F(ProxyTest, CarriesOutSeveralActsAtOnce) {
  proxy().drop_request("INCR");
  proxy().answer_with_error("GET", "ERR no");
  client().send("INCR", "n");
  ASSERT_TRUE(wait_until([&] { return proxy().acted() == 1; }));
  EXPECT_FALSE(proxy().has_lost());
  EXPECT_EQ(client()("GET", "greeting"), "-ERR no");
  EXPECT_EQ(proxy().acted(), 2U);
  EXPECT_TRUE(proxy().has_lost());
}

TEST_F(ProxyTest, LetsNothingThroughWhileItStalls) {
  EXPECT_EQ(client()("INCR", "n"), ":1");
  proxy().stall();
  client().send("INCR", "n");
  EXPECT_EQ(raw()("GET", "n"), "\"1\"");
  proxy().flow();
  EXPECT_EQ(client().receive(), ":2");
}

}  // namespace
}  // namespace millrace::test
