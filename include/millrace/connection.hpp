#pragma once

#include <millrace/export.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace millrace {

namespace detail {
class Pool;
}

/// Where the server is and how to talk to it. No time may be longer than ten years.
struct ConnectionOptions {
  /// A user and a password. An empty user is the server's `default` user.
  struct Credentials {
    std::string username{};
    std::string password{};
  };

  std::string host{"127.0.0.1"};  ///< Name or address. Not used with `unix_socket`.
  std::uint16_t port = 6379;      ///< 1 to 65535.
  std::string unix_socket{};  ///< Path of a Unix socket; if given, used instead of host and port.
  std::string username{};     ///< Empty: the `default` user. Needs a password.
  std::string password{};     ///< Empty: no AUTH is sent.
  /// Asked at each connect, in place of `username` and `password` (giving both is refused): a
  /// rotated secret works without a restart. May be called from any thread, also at once.
  std::function<Credentials()> credentials{};
  std::uint32_t database = 0;  ///< SELECTed on each new connection.
  std::string client_name{};   ///< Shown by CLIENT LIST; no spaces or newlines. Empty: none.
  /// To resolve, connect and set up one connection; more than 0.
  std::chrono::milliseconds connect_timeout{2'000};
  /// To send one command and have its reply; more than 0. A blocking read gets its block time on
  /// top of it.
  std::chrono::milliseconds command_timeout{1'000};
  /// Idle time before TCP asks whether the peer is still there; whole seconds, 0 is off. A
  /// half-open connection is noticed after about twice this time.
  std::chrono::milliseconds tcp_keepalive{30'000};
  /// 2, or 3 where hiredis can read it (1.0 and newer). Results are the same.
  int resp_version = 2;

  /// Reads `redis://[[user]:password@]host[:port][/database][?option=value&…]` and
  /// `unix://[[user]:password@]/path/to/socket[?option=value&…]`.
  ///
  /// Options: `db`, `client_name`, `connect_timeout`, `command_timeout`, `tcp_keepalive` (`500ms`,
  /// `2s`, or plain milliseconds), `resp_version`. Reserved characters are percent-encoded.
  /// Throws InvalidArgument, which names the bad part and never repeats the password, and
  /// UnsupportedError for a scheme that this build cannot serve.
  MILLRACE_EXPORT static ConnectionOptions from_uri(std::string_view uri);
};

/// Bounds of a pool. No time may be longer than ten years.
struct PoolOptions {
  std::size_t max_connections = 16;  ///< At least 1. Connections made and in use never exceed it.
  std::size_t min_idle_connections = 0;  ///< Kept open although idle; at most `max_connections`.
  /// How long a borrower waits for a connection before PoolTimeout; 0: not at all.
  std::chrono::milliseconds wait_timeout{1'000};
  /// An idle connection beyond `min_idle_connections` is closed at the first call after this time;
  /// more than 0.
  std::chrono::milliseconds max_idle_time{60'000};
  /// A connection older than this, give or take a tenth, is replaced when it is idle; 0: never.
  std::chrono::milliseconds max_lifetime{0};
};

/// What a pool is doing, at one moment.
struct PoolStats {
  std::size_t open = 0;        ///< Connections that exist: idle or in use.
  std::size_t idle = 0;        ///< Ready to be borrowed.
  std::size_t in_use = 0;      ///< Borrowed, or being made for a borrower.
  std::size_t waiting = 0;     ///< Borrowers that wait for one.
  std::uint64_t created = 0;   ///< Connections made since the pool was.
  std::uint64_t closed = 0;    ///< Connections closed since then.
  std::uint64_t timeouts = 0;  ///< Borrowers that were turned away with PoolTimeout.
};

/// A bounded pool of connections to one server. A cheap handle: copies share one pool, and an
/// EventStream keeps one. Safe from any thread.
///
/// After fork() a child gets an error from every call and cannot disturb its parent's connections;
/// it makes a pool of its own.
class MILLRACE_EXPORT ConnectionPool {
 public:
  /// Checks the options and does no I/O. Throws InvalidArgument, which names the option, the value
  /// and the rule, or UnsupportedError.
  explicit ConnectionPool(ConnectionOptions options = {}, PoolOptions pool = {});

  // Moving copies, so that no handle is ever empty.
  ConnectionPool(const ConnectionPool&) = default;
  ConnectionPool& operator=(const ConnectionPool&) = default;
  ~ConnectionPool() = default;

  /// One round trip. Throws what any call may: ConnectError, PoolTimeout, AuthError, …
  void ping() const;

  /// Counts of this moment, all from the same one. No I/O.
  PoolStats stats() const;

 private:
  friend class detail::Pool;
  std::shared_ptr<detail::Pool> pool_;
};

}  // namespace millrace
