#pragma once

#include "core/clock.hpp"

#include <cstdint>
#include <string>

namespace millrace::detail {

class Wakeup;

/// What to wait for on a byte stream.
struct Interest {
  bool readable = false;
  bool writable = false;
};

/// Why a wait ended.
enum class Waited : std::uint8_t {
  kReady,     ///< The stream can be read or written, or is broken: trying tells which.
  kWoken,     ///< The Wakeup was signalled.
  kTimedOut,  ///< The deadline has come and the stream is not ready.
};

/// Waits for `descriptor` (none if negative) and `wakeup` (none if null) until `deadline`.
/// A signal does not end it: the time left is taken from the clock again. A deadline that has
/// passed still looks once, so a reply that came in time is not missed by a process that was
/// stopped.
Waited poll_until(int descriptor, Interest interest, const Wakeup* wakeup, TimePoint deadline,
                  const Clock& clock);

/// True if there is nothing to read from `descriptor`, not even its end. One look, no waiting.
bool is_quiet_now(int descriptor) noexcept;

/// The system's text for `error_number`, safe from any thread.
std::string system_message(int error_number);

}  // namespace millrace::detail
