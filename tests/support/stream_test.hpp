#pragma once

#include <millrace/event_stream.hpp>

#include "support/entries.hpp"
#include "support/server_test.hpp"
#include "support/wait_until.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <string>

namespace millrace::test {

using namespace std::chrono_literals;

/// All there is, without waiting.
inline const ReadOptions kAllNow{.count = 1000, .block = 0ms};
/// For a read that is sure to be given something.
inline const ReadOptions kLong{.count = 1000, .block = kGenerous};

/// The stream `s` with the group `g`, and what most tests start from.
class StreamTest : public ProtocolTest {
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

}  // namespace millrace::test
