#pragma once

#include <millrace/histogram.hpp>
#include <millrace/observer.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace millrace {

/// Counters since the worker was made, and gauges.
struct WorkerStats {
  std::uint64_t delivered = 0;  ///< Entries that came, those taken over included.
  std::uint64_t succeeded = 0;  ///< Entries whose handler said ack.
  std::uint64_t failed = 0;   ///< Those whose handler asked for a retry or a dead letter, or threw.
  std::uint64_t retried = 0;  ///< Of these, those that are to be tried again.
  std::uint64_t dead_lettered = 0;  ///< Dead letters written.
  std::uint64_t reclaimed = 0;      ///< Entries taken over: idle ones of anybody, and own orphans.
  std::uint64_t released = 0;       ///< Entries given back at the stop.
  /// Held entries that turned out to be a peer's, whose lease was not renewed for `min_idle`, or
  /// whose call took longer than `max_handler_time`.
  std::uint64_t leases_lost = 0;
  std::uint64_t trimmed = 0;     ///< Pending entries whose payload was gone.
  std::uint64_t reconnects = 0;  ///< Connections made after the first.
  std::size_t in_flight = 0;     ///< Entries held now: queued, running, or not yet acknowledged.
  std::size_t queued_bytes = 0;  ///< Bytes of the payloads that are held now.

  // Empty if WorkerOptions::metrics is false.

  /// When an entry was last handled, well or not, by this machine's clock. None: none was.
  std::optional<std::chrono::system_clock::time_point> last_completion{};
  /// From before a handler call to its return; a batch is one call, and what was deferred goes on
  /// after it. Bounds double from 100 µs to 105 s.
  Histogram handler_time{};
  /// From the milliseconds of an entry's id, when it was appended, to its handler's ack. These are
  /// two machines' clocks: less than nothing counts as 0. Says nothing of entries whose ids are no
  /// times. Bounds double from 1 ms to 4.7 hours.
  Histogram age{};

  WorkerState state = WorkerState::kCreated;  ///< As of now.
  std::string stream{}, group{}, consumer{};  ///< Whose numbers these are.
};

}  // namespace millrace
