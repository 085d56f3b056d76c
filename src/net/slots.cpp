#include "net/slots.hpp"

#include <millrace/error.hpp>

#include "net/deadline.hpp"
#include "net/exchange.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace millrace::detail {

Slots::Slots(const PoolOptions& options, const Topology& topology, const Clock& clock)
    : options_{options}, topology_{topology}, clock_{clock}, random_{std::random_device{}()} {}

Pooled Slots::acquire(const CallSpec& spec, TimePoint& now) {
  std::unique_lock lock{mutex_};
  Pooled pooled;
  if (!take_now(spec.key, pooled)) {
    pooled = wait_in_line(std::move(lock), spec);
    now = clock_.now();
  }
  return pooled;
}

/// Whoever comes while others stand in line finds nothing here: all places are taken then.
bool Slots::take_now(std::string_view key, Pooled& pooled) {
  const auto fitting = std::find_if(idle_.rbegin(), idle_.rend(), [&](const Idle& idle) {
    return topology_.serves(*idle.pooled.connection, key);
  });
  if (fitting != idle_.rend()) {
    pooled = std::move(fitting->pooled);
    idle_.erase(std::next(fitting).base());
  } else if (open() == options_.max_connections) {
    if (idle_.empty()) return false;
    pooled = std::move(idle_.front().pooled);  // the borrower puts the right one in its place
    idle_.erase(idle_.begin());
  }
  ++in_use_;
  return true;
}

Pooled Slots::wait_in_line(std::unique_lock<std::mutex> lock, const CallSpec& spec) {
  // What is being closed leaves its place at once: without patience, too, it is worth the wait.
  constexpr Milliseconds kMoment{100};
  const auto patience =
      closing_ > 0 ? std::max(options_.wait_timeout, kMoment) : options_.wait_timeout;
  Waiter waiter;
  line_.push_back(&waiter);
  waiter.served.wait_for(lock, spec.stop, patience, [&waiter] { return waiter.has_place; });
  if (waiter.has_place) return std::move(waiter.pooled);
  std::erase(line_, &waiter);
  if (spec.stop.stop_requested()) throw Interrupted{};
  ++timeouts_;
  lock.unlock();
  refuse(spec);
}

void Slots::release(Pooled pooled) noexcept {
  const auto now = clock_.now();
  const bool had_connection = pooled.connection != nullptr;
  if (had_connection && (!pooled.connection->is_open() || now >= pooled.expires)) {
    pooled.connection.reset();
  }
  std::unique_lock lock{mutex_};
  if (had_connection && !pooled.connection) ++closed_;
  put_back(std::move(pooled), now);
  close_expired(std::move(lock), now);
}

/// To the first in line, or to the idle ones.
void Slots::put_back(Pooled pooled, TimePoint now) noexcept {
  if (!line_.empty()) {
    Waiter& first = *line_.front();
    line_.pop_front();
    first.pooled = std::move(pooled);
    first.has_place = true;
    first.served.notify_one();  // under the lock: the waiter may be gone right after it
    return;
  }
  --in_use_;
  if (pooled.connection) idle_.push_back({std::move(pooled), now});  // room: see note_created()
}

/// One that has been idle for too long or has become too old; null if there is none.
std::unique_ptr<Connection> Slots::take_expired(TimePoint now) noexcept {
  // The one at the front has been idle for longest; lifetimes are in no order.
  const auto expired = std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) {
    return now >= idle.pooled.expires || (idle_.size() > options_.min_idle_connections &&
                                          now - idle.since >= options_.max_idle_time);
  });
  if (expired == idle_.end()) return nullptr;
  auto connection = std::move(expired->pooled.connection);
  idle_.erase(expired);
  return connection;
}

void Slots::close_expired(std::unique_lock<std::mutex> lock, TimePoint now) noexcept {
  while (auto connection = take_expired(now)) {
    ++in_use_;
    ++closing_;
    lock.unlock();
    connection.reset();
    lock.lock();
    --closing_;
    ++closed_;
    put_back({}, now);
  }
}

void Slots::note_closed() noexcept {
  const std::lock_guard lock{mutex_};
  ++closed_;
}

Pooled Slots::note_created(std::unique_ptr<Connection> connection) {
  const auto now = clock_.now();
  const std::lock_guard lock{mutex_};
  idle_.reserve(open());  // so that coming home cannot fail
  ++created_;
  Pooled pooled{.connection = std::move(connection)};
  if (const auto lifetime = options_.max_lifetime.count(); lifetime > 0) {
    // Connections that were made together must not all be made again together.
    std::uniform_int_distribution<Milliseconds::rep> jitter{-lifetime / 10, lifetime / 10};
    pooled.expires = after(now, options_.max_lifetime + Milliseconds{jitter(random_)});
  }
  return pooled;
}

PoolStats Slots::stats() const {
  const std::lock_guard lock{mutex_};
  return {.open = open(),
          .idle = idle_.size(),
          .in_use = in_use_,
          .waiting = line_.size(),
          .created = created_,
          .closed = closed_,
          .timeouts = timeouts_};
}

void Slots::abandon() noexcept {
  const std::unique_lock lock{mutex_, std::try_to_lock};
  if (lock) idle_.clear();
}

void Slots::refuse(const CallSpec& spec) const {
  throw PoolTimeout{fmt::format(
      "{}: no connection of the pool became free within {} ms (wait_timeout): all {} of "
      "max_connections are in use. Raise max_connections, call from fewer threads at once, or do "
      "not hold one call open inside another",
      subject(spec, topology_.name()), options_.wait_timeout.count(), options_.max_connections)};
}

}  // namespace millrace::detail
