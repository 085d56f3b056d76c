#pragma once

#include <millrace/connection.hpp>

#include "core/clock.hpp"
#include "net/connection.hpp"
#include "net/topology.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// An open connection and when it has to be replaced.
struct Pooled {
  std::unique_ptr<Connection> connection{};
  TimePoint expires = TimePoint::max();
};

/// The pool's books: who holds a place, who waits for one, what lies idle. A place is the right to
/// have one connection, so there are never more connections than places. It makes none, and closes
/// them outside its lock, before their place is free.
class Slots {
 public:
  Slots(const PoolOptions& options, const Topology& topology, const Clock& clock);

  /// Takes a place, and with it the idle connection that was used last; if none serves the key, the
  /// place of another. Waits in line for at most `wait_timeout`. `now` is the time, and is again if
  /// this had to wait. Throws PoolTimeout or Interrupted.
  Pooled acquire(const CallSpec& spec, TimePoint& now);

  /// Gives the place back, with a connection that goes on living if it is open and not too old.
  void release(Pooled pooled) noexcept;

  /// The place is kept; its connection is gone.
  void note_closed() noexcept;
  /// The place has a connection again.
  Pooled note_created(std::unique_ptr<Connection> connection);

  PoolStats stats() const;

  /// In a child after fork(): closes its copies of the idle sockets, unless the lock was held by a
  /// thread that the child does not have.
  void abandon() noexcept;

 private:
  struct Idle {
    Pooled pooled;
    TimePoint since;
  };

  /// A borrower in line. What it waits for is handed to it, so nobody can overtake it.
  struct Waiter {
    std::condition_variable_any served{};
    bool has_place = false;
    Pooled pooled{};
  };

  bool take_now(std::string_view key, Pooled& pooled);
  Pooled wait_in_line(std::unique_lock<std::mutex> lock, const CallSpec& spec);
  void put_back(Pooled pooled, TimePoint now) noexcept;
  std::unique_ptr<Connection> take_expired(TimePoint now) noexcept;
  void close_expired(std::unique_lock<std::mutex> lock, TimePoint now) noexcept;
  std::size_t open() const noexcept { return idle_.size() + in_use_; }
  [[noreturn]] void refuse(const CallSpec& spec) const;

  const PoolOptions options_;
  const Topology& topology_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::vector<Idle> idle_;  ///< The one used last is at the back.
  std::deque<Waiter*> line_;
  std::size_t in_use_ = 0;   ///< Places taken, by borrowers and by what is being closed.
  std::size_t closing_ = 0;  ///< Those of them that will be free in a moment.
  std::uint64_t created_ = 0;
  std::uint64_t closed_ = 0;
  std::uint64_t timeouts_ = 0;
  std::minstd_rand random_;
};

}  // namespace millrace::detail
