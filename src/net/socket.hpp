#pragma once

#include <millrace/connection.hpp>

#include "core/clock.hpp"
#include "net/transport.hpp"
#include "net/wakeup.hpp"

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

namespace millrace::detail {

/// How far a connection attempt may go.
struct Attempt {
  Milliseconds limit;  ///< As messages show it.
  TimePoint deadline;
  std::stop_token stop;
  const Wakeup* wakeup;  ///< Signalled when `stop` is; null if it never can be.
  const Clock& clock;
};

/// `host:port`, `[address]:port`, or the path of the Unix socket.
std::string endpoint_of(const ConnectionOptions& options);

/// Resolves and connects. Throws ConnectError, or Interrupted. Looking a name up is the system's:
/// it cannot be ended before it returns, but its time counts.
std::unique_ptr<Transport> connect_socket(const ConnectionOptions& options, const Attempt& attempt);

/// Tries one address (in numbers) after another; at least one. Throws ConnectError with what the
/// first one said, or Interrupted.
std::unique_ptr<Transport> connect_to_any(const std::vector<std::string>& addresses,
                                          const ConnectionOptions& options, const Attempt& attempt);

/// A connection to a local port that nobody listens on can meet itself (both ends are given that
/// port), and would then read its own commands as replies.
bool has_met_itself(int descriptor) noexcept;

}  // namespace millrace::detail
