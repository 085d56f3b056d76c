#pragma once

#include <millrace/connection.hpp>

#include "core/clock.hpp"
#include "net/connection.hpp"

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

namespace millrace::detail {

/// Knows which server a key lives on. The only place that does: where there is one server, a
/// master that Sentinel names, or the nodes of a cluster, the layers above see the same.
class Topology {
 public:
  Topology() = default;
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;
  virtual ~Topology() = default;

  /// A new connection, set up, to the server that `key` lives on now. Finding it may take I/O of
  /// its own. Takes at most `connect_timeout`, and no longer than `deadline`. Throws ConnectError,
  /// the server's refusal of the set-up, or Interrupted.
  virtual std::unique_ptr<Connection> connect(std::string_view key, TimePoint deadline,
                                              std::stop_token stop) = 0;

  /// Whether `connection` leads to the server that `key` lives on, as far as is known without I/O.
  virtual bool serves(const Connection& connection, std::string_view key) const noexcept = 0;

  /// What messages call the servers.
  virtual std::string_view name() const noexcept = 0;
};

/// One server that has every key.
class Standalone final : public Topology {
 public:
  Standalone(ConnectionOptions options, const Clock& clock);

  std::unique_ptr<Connection> connect(std::string_view key, TimePoint deadline,
                                      std::stop_token stop) override;
  bool serves(const Connection&, std::string_view) const noexcept override { return true; }
  std::string_view name() const noexcept override { return endpoint_; }

 private:
  ConnectionOptions options_;
  std::string endpoint_;
  const Clock* clock_;
};

}  // namespace millrace::detail
