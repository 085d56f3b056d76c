#pragma once

#include <millrace/event_stream.hpp>

#include "net/pool.hpp"
#include "support/entries.hpp"
#include "support/raw_client.hpp"
#include "support/server_test.hpp"
#include "support/wait_until.hpp"
#include "worker/scripts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::test {

using namespace std::chrono_literals;
namespace scripts = detail::scripts;

/// The worker's scripts against a server: the stream `s` with the group `g`, for `alice`, whose
/// token is `mine`.
class ScriptTest : public ::testing::Test {
 protected:
  explicit ScriptTest(ThrowawayServer& server = ServerTest::server())
      : raw_{server.options()}, pool_{server.options()} {
    raw_("FLUSHALL");
  }

  /// As the library sends them.
  struct Eval {
    detail::Pool& pool;

    detail::Reply operator()(const detail::CallSpec& spec, const detail::Script& script,
                             std::span<const std::string_view> keys,
                             std::span<const std::string_view> args) const {
      return pool.eval(spec, script, keys, args);
    }
  };

  RawClient& raw() { return raw_; }
  const EventStream& s() const { return stream_; }
  detail::WorkerConfig& config() { return config_; }
  Eval& eval() { return eval_; }

  // ---- what there is

  /// The entries `1-0` to `<count>-0`, which `owner` was given for the first time.
  void given_pending(std::size_t count, std::string_view owner = "alice") {
    for (std::uint64_t i = 1; i <= count; ++i) append(s(), {{i, 0}});
    s().ensure_group("g", GroupStart::beginning());
    s().consume("g", std::string{owner}, {.count = 100, .block = 0ms});
  }
  /// From now on it is this one's, so often delivered and so long idle.
  void given(StreamId id, std::string_view owner, std::uint64_t deliveries,
             std::chrono::milliseconds idle) {
    raw_("XCLAIM", "s", "g", owner, 0, id, "IDLE", idle.count(), "RETRYCOUNT", deliveries,
         "JUSTID");
  }
  /// A newer worker of the same name has started.
  void given_newer() { raw_("HSET", kRecord, "token:alice", "newer"); }
  /// As far from now as that, by the server's clock.
  std::string ago(std::chrono::milliseconds time) {
    const std::int64_t now = std::stoll(raw_("TIME")[0].text) * 1000;
    return std::to_string(now - time.count());
  }

  // ---- what became of it

  /// `1-0 alice 3 idle 60m`, for each pending entry.
  std::vector<std::string> pending() {
    std::vector<std::string> lines;
    for (const RawReply& entry : raw_("XPENDING", "s", "g", "-", "+", 1000).elements) {
      lines.push_back(entry[0].text + ' ' + entry[1].text + ' ' + std::to_string(entry[3].integer) +
                      " idle " + std::to_string(entry[2].integer / 60'000) + 'm');
    }
    return lines;
  }
  std::string recorded(std::string_view field) { return raw_("HGET", kRecord, field).text; }
  std::vector<RawReply> letters() {
    std::vector<RawReply> letters;
    for (const RawReply& entry : raw_("XRANGE", kLetters, "-", "+").elements) {
      letters.push_back(entry[1]);
    }
    return letters;
  }
  std::vector<std::string> letter_ids() {
    std::vector<std::string> ids;
    for (const RawReply& letter : letters()) ids.push_back(letter.field("dlq_id").text);
    return ids;
  }
  std::int64_t letters_written() { return raw_("XLEN", kLetters).integer; }

  /// All that a script could change.
  std::string everything() {
    std::string all = raw_("XRANGE", "s", "-", "+").str() + raw_("XINFO", "GROUPS", "s").str() +
                      raw_("HGETALL", kRecord).str() + raw_("XRANGE", kLetters, "-", "+").str();
    for (const RawReply& consumer : raw_("XINFO", "CONSUMERS", "s", "g").elements) {
      all += '\n' + consumer.field("name").text;
    }
    for (const std::string& line : pending()) all += '\n' + line;
    return all;
  }

  /// `call` says that a newer worker has the name, and changes nothing; without that one it works.
  template <typename Call>
  void expect_needs_the_token(Call&& call) {
    given_newer();
    const std::string before = everything();
    EXPECT_EQ(thrown<ServerError>(call).prefix(), "SUPERSEDED");
    EXPECT_EQ(everything(), before);
    raw_("HSET", kRecord, "token:alice", "mine");
    call();
    EXPECT_NE(everything(), before);
  }

  static constexpr std::string_view kRecord = "{s}:millrace:g";
  static constexpr std::string_view kLetters = "{s}:dlq";

 private:
  RawClient raw_;
  ConnectionPool pool_;
  Eval eval_{detail::Pool::of(pool_)};
  EventStream stream_{pool_, "s"};
  detail::WorkerConfig config_{.key = "s",
                               .group = "g",
                               .consumer = "alice",
                               .record = std::string{kRecord},
                               .token = "mine",
                               .min_idle = 1h,
                               .lease_renew_every = 20min,
                               .letters = {.stream = std::string{kLetters}}};
};

/// Started before what uses it.
struct ServerOfItsOwn {
  ThrowawayServer own{};
};

/// On a server whose configuration a test may change.
class ScriptTestOnItsOwnServer : private ServerOfItsOwn, public ScriptTest {
 protected:
  ScriptTestOnItsOwnServer() : ScriptTest{own} {}

  ThrowawayServer& server() { return own; }
  /// Every command that needs memory is refused from now on.
  void given_no_memory() { raw()("CONFIG", "SET", "maxmemory", 1); }
};

}  // namespace millrace::test
