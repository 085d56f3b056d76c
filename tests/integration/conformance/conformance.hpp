#pragma once

#include <millrace/event_stream.hpp>

#include "support/entries.hpp"
#include "support/server_test.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>

// What Redis and Valkey really do, said once more by each server that the tests run on, and what
// the library makes of it. Where EventStream has the call it is made through it; what it has no
// call for is sent bare, on a plain connection.

namespace millrace::test {

using namespace std::chrono_literals;
using ::testing::StartsWith;

inline const ReadOptions kAllNow{.count = 1000, .block = 0ms};
inline const ReadOptions kLong{.count = 1000, .block = kGenerous};

/// The stream `s` with the group `g`, and what most tests start from.
class ConformanceTest : public ProtocolTest {
 protected:
  void SetUp() override {
    ProtocolTest::SetUp();
    if (!IsSkipped()) stream_.emplace(stream("s"));
  }
  const EventStream& s() const { return *stream_; }

  /// 1-0, 2-0 and 3-0 are in the stream, and the group reads from its beginning.
  void given_three_entries() {
    append(s(), {{1, 0}, {2, 0}, {3, 0}});
    s().ensure_group("g", GroupStart::beginning());
  }
  /// And alice has read them all.
  void given_three_pending() {
    given_three_entries();
    s().consume("g", "alice", kAllNow);
  }

  /// True once `count` clients wait in blocking reads.
  [[nodiscard]] bool blocked(std::size_t count) { return blocked(raw(), count); }
  [[nodiscard]] static bool blocked(RawClient& raw, std::size_t count) {
    return wait_until(
        [&] { return info_field(raw, "clients", "blocked_clients") == std::to_string(count); });
  }
  /// How many wait now: what was sent before on `raw` has had its effect.
  std::string blocked_now() { return info_field(raw(), "clients", "blocked_clients"); }

  /// A read for the group that waits on a thread of its own.
  static std::future<EntryBatch> consume_in_background(EventStream stream, std::string consumer,
                                                       ReadOptions options = kLong) {
    return std::async(std::launch::async, [stream, consumer, options] {
      return stream.consume("g", consumer, options);
    });
  }

 private:
  std::optional<EventStream> stream_{};
};

/// The same on plain connections.
class BareConformanceTest : public BareTest {
 protected:
  /// The null that stands for an array, as this protocol writes it.
  static std::string null_array() { return resp3() ? "_" : "*-1"; }
  static std::string null_string() { return resp3() ? "_" : "$-1"; }

  void given_three_entries(const std::string& key = "s") {
    for (const char* id : {"1-0", "2-0", "3-0"}) raw()("XADD", key, id, "f", "v");
    raw()("XGROUP", "CREATE", key, "g", "0");
  }
  void given_three_pending() {
    given_three_entries();
    raw()("XREADGROUP", "GROUP", "g", "alice", "STREAMS", "s", ">");
  }

  /// The entries that a read of one stream returned.
  static const RawReply& entries_of(const RawReply& reply) {
    return resp3() ? reply[1] : reply[0][1];
  }
};

}  // namespace millrace::test
