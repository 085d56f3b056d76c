#pragma once

#include <millrace/error.hpp>

#include "core/clock.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace millrace::detail {

/// What a worker does about an error.
enum class Remedy : std::uint8_t {
  kNone,       ///< No fault: somebody woke the read. Read on.
  kRetry,      ///< Degraded: again after a pause that grows.
  kReconnect,  ///< The same, on a new connection: the server is no longer the master, or not sane.
  kRetrySlowly,  ///< Degraded: only people can mend it (ACL, password). Do not hammer.
  kRemakeGroup,
  kFail,  ///< Nothing but another program or another server can help.
};

/// Where only people can help, asking more often would not.
inline constexpr Milliseconds kSlowPause{5'000};

/// By the error's class and first word alone, as far as they can tell.
Remedy remedy_for(const Error& error) noexcept;

/// Says a repeated fault once a minute, with its count, whether or not it went away in between. Not
/// for two threads at once.
class FaultLog {
 public:
  /// The line to log now, if any.
  std::optional<std::string> report(const Error& error, TimePoint now);

  /// All is well again: the line to log, if a fault was said since the last time.
  std::optional<std::string> recovered();

  static constexpr Milliseconds kRepeatEvery{60'000};

 private:
  struct Fault {
    Error::Code code;
    std::string prefix;
    std::uint64_t unsaid = 0;
    TimePoint said{};
  };
  std::vector<Fault> faults_;
  bool said_ = false;
};

}  // namespace millrace::detail
