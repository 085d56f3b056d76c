#pragma once

#include <millrace/connection.hpp>

#include "core/clock.hpp"
#include "net/transport.hpp"
#include "net/wakeup.hpp"

#include <memory>
#include <stop_token>
#include <string>

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

/// Resolves and connects, trying each address until one answers. Throws ConnectError, or
/// Interrupted. Looking a name up is the resolver's: it cannot be ended before it returns, but its
/// time counts.
std::unique_ptr<Transport> connect_socket(const ConnectionOptions& options, const Attempt& attempt);

/// A connection to a local port that nobody listens on can meet itself (both ends are given that
/// port), and would then read its own commands as replies.
bool has_met_itself(int descriptor) noexcept;

}  // namespace millrace::detail
