#include <millrace/connection.hpp>

#include "net/pool.hpp"

#include <utility>

namespace millrace {

ConnectionPool::ConnectionPool(ConnectionOptions options, PoolOptions pool)
    : pool_{std::make_shared<detail::Pool>(std::move(options), pool)} {}

void ConnectionPool::ping() const {
  pool_->call({.command = "PING", .key = {}, .repeat = detail::Repeat::kSafe},
              [](detail::RequestBuffer& request) { request.command("PING", 1); });
}

PoolStats ConnectionPool::stats() const { return pool_->stats(); }

}  // namespace millrace
