#pragma once

#include "support/stream_test.hpp"

// What Redis and Valkey really do, said once more by each server that the tests run on, and what
// the library makes of it. Where EventStream has the call it is made through it; what it has no
// call for is sent bare, on a plain connection.

namespace millrace::test {

/// Commands on plain connections.
class BareConformanceTest : public BareTest {
 protected:
  /// The null that stands for an array, as this protocol writes it.
  static std::string null_array() { return resp3() ? "_" : "*-1"; }

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
