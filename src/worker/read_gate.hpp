#pragma once

#include "core/clock.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace millrace::detail {

/// Where a read that waits on the server can be found, so that a stop can end it, or a retry that
/// is due before.
///
/// Invariant: once close() has returned, no visit is allowed. So whoever closes the gate and then
/// finds nobody inside knows that no read is outstanding, and none will be.
class ReadGate {
 public:
  /// From before a read is sent until its reply was taken, or never will be.
  class Visit {
   public:
    /// On the connection with this client id; the read is sent after `since`.
    Visit(ReadGate& gate, std::uint64_t client_id, TimePoint since = {})
        : gate_{gate}, is_allowed_{gate.enter({client_id, since})} {}
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    ~Visit() {
      if (is_allowed_) gate_.leave();
    }

    /// By then the read has ended by itself. Until this is called: never.
    void ends_at(TimePoint time) {
      if (is_allowed_) gate_.ends_at(time);
    }

    /// False: a stop has come, do not read.
    bool is_allowed() const noexcept { return is_allowed_; }

   private:
    ReadGate& gate_;
    const bool is_allowed_;
  };

  void close() {
    std::lock_guard lock{mutex_};
    closed_ = true;
  }

  /// A read that may be outstanding.
  struct Outstanding {
    std::uint64_t client_id = 0;
    TimePoint since{};
  };

  std::optional<Outstanding> inside() const {
    std::lock_guard lock{mutex_};
    return inside_;
  }

  /// Who is inside, if that read may last beyond `time`.
  std::optional<std::uint64_t> inside_beyond(TimePoint time) const {
    std::lock_guard lock{mutex_};
    if (!inside_ || ends_at_ <= time) return std::nullopt;
    return inside_->client_id;
  }

  /// The user may not end reads: none is to wait for longer than it may be late.
  void cannot_be_ended() noexcept { endable_.store(false, std::memory_order_relaxed); }
  bool is_endable() const noexcept { return endable_.load(std::memory_order_relaxed); }

  /// True as soon as nobody is inside; false if that took longer than `wait`.
  bool wait_until_left(Milliseconds wait) {
    std::unique_lock lock{mutex_};
    return left_.wait_for(lock, wait, [this] { return !inside_; });
  }

 private:
  bool enter(const Outstanding& read) {
    std::lock_guard lock{mutex_};
    if (closed_) return false;
    inside_ = read;
    ends_at_ = TimePoint::max();
    return true;
  }

  void ends_at(TimePoint time) {
    std::lock_guard lock{mutex_};
    ends_at_ = time;
  }

  void leave() {
    std::lock_guard lock{mutex_};
    inside_.reset();
    left_.notify_all();
  }

  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::optional<Outstanding> inside_;
  TimePoint ends_at_{};
  bool closed_ = false;
  std::atomic<bool> endable_{true};
};

}  // namespace millrace::detail
