#pragma once

#include <millrace/connection.hpp>

#include "net/connection.hpp"

#include <memory>
#include <span>
#include <stop_token>
#include <string_view>

namespace millrace::detail {

class Clock;
class Topology;

/// What a ConnectionPool shares. Everything above this folder talks to servers through it.
class Pool {
 public:
  /// Checks the options; does no I/O.
  Pool(ConnectionOptions options, PoolOptions pool);
  /// Over servers of the caller's choice.
  Pool(std::unique_ptr<Topology> topology, ConnectionOptions options, PoolOptions pool,
       const Clock& clock);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  static Pool& of(const ConnectionPool& pool) noexcept { return *pool.pool_; }

  /// Connection::call on a borrowed connection. Where that breaks, it is sent once more, on a new
  /// one, if it was not sent whole or if `spec.repeat` says that this cannot change the result;
  /// within the deadline of the first try.
  Reply call(const CallSpec& spec, WriteRequest write);

  /// Connection::pipeline on a borrowed connection. That none could be had is in the result, too.
  /// Repeated as call() is, if no reply has been taken.
  PipelineResult pipeline(const CallSpec& spec, WriteRequest write, TakeReply take);

  /// Connection::eval on a borrowed connection.
  Reply eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
             std::span<const std::string_view> args);

  /// A connection of one's own to the server of `key`, outside the pool's bound. The attempt ends
  /// after `connect_timeout`, at `deadline`, or by `stop` with Interrupted.
  std::unique_ptr<Connection> connect(std::string_view key, std::stop_token stop = {},
                                      TimePoint deadline = TimePoint::max());

  const ConnectionOptions& options() const noexcept;
  PoolStats stats() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace millrace::detail
