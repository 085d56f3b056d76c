#include "stream/producer_queue.hpp"

#include <millrace/error.hpp>

#include "core/waiting.hpp"
#include "net/deadline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace millrace::detail {
namespace {

constexpr std::size_t kOnlyFull = std::numeric_limits<std::size_t>::max();

}  // namespace

void ProducerQueue::add(std::string_view command, std::size_t fields, ProducerReceipt&& receipt,
                        Milliseconds patience) {
  if (command.size() > options_.max_queued_bytes) {
    throw InvalidArgument{fmt::format(
        "an entry of {} bytes can never be queued: ProducerOptions::max_queued_bytes is {}",
        command.size(), options_.max_queued_bytes)};
  }
  const TimePoint now = clock_.now();
  std::unique_lock lock{mutex_};
  if (!has_room(command.size()) && !closed_) {
    ++waiting_;
    const bool served = wait_by_clock(room_, lock, after(now, patience), clock_,
                                      [&] { return closed_ || has_room(command.size()); });
    --waiting_;
    if (!served) {
      lock.unlock();
      refuse(patience);
    }
  }
  if (closed_) {
    throw IoError{"this Producer is being destroyed and takes no more entries; nothing was sent",
                  Outcome::kNotApplied};
  }
  try {
    block_for(command.size()).add(command, fields, now, std::move(receipt));
  } catch (...) {
    if (!blocks_.empty() && blocks_.back().entries.empty()) blocks_.pop_back();
    throw;
  }
  ++entries_;
  ++taken_;
  bytes_ += command.size();
  const bool wakes = take_wake();
  const bool is_idle = idle_;
  lock.unlock();
  if (!wakes) return;
  is_idle ? changed_.notify_one() : wakeup_.signal();
}

bool ProducerQueue::has_room(std::size_t bytes) const noexcept {
  return entries_ < options_.max_queued && bytes <= options_.max_queued_bytes - bytes_;
}

void ProducerQueue::refuse(Milliseconds patience) const {
  throw TimeoutError{
      fmt::format(
          "the producer's queue had no room within {} ms (send_timeout; 0 in a callback): "
          "max_queued of {} entries or max_queued_bytes of {} is reached. Send more slowly, "
          "or see why the server does not take them; nothing was sent",
          patience.count(), options_.max_queued, options_.max_queued_bytes),
      Outcome::kNotApplied};
}

bool ProducerQueue::is_full(const ProducerBlock& block) const noexcept {
  return block.entries.size() >= options_.max_batch ||
         block.bytes.size() >= options_.max_batch_bytes;
}

bool ProducerQueue::has_full_block() const noexcept {
  return blocks_.size() > 1 || (!blocks_.empty() && is_full(blocks_.front()));
}

TimePoint ProducerQueue::lingers_until() const noexcept {
  return after(blocks_.front().entries.front().since, options_.linger);
}

bool ProducerQueue::may_go(std::size_t outstanding) const noexcept {
  if (blocks_.empty()) return false;
  if (has_full_block()) return true;
  const bool lingers = options_.linger.count() > 0;
  if (outstanding > 0) return !lingers && blocks_.front().entries.size() >= outstanding;
  return !lingers || flushing_ > 0 || closed_ || clock_.now() >= lingers_until();
}

/// The one that an entry of so many bytes is to be added to.
ProducerBlock& ProducerQueue::block_for(std::size_t bytes) {
  if (!blocks_.empty()) {
    ProducerBlock& last = blocks_.back();
    if (!is_full(last) && last.bytes.size() + bytes <= options_.max_batch_bytes) return last;
  }
  if (spare_.empty()) {
    blocks_.emplace_back();
  } else {
    blocks_.splice(blocks_.end(), spare_, spare_.begin());
  }
  return blocks_.back();
}

/// Whether the sender is to be woken for what is here now, by the caller.
bool ProducerQueue::take_wake() noexcept {
  if (!wake_at_) return false;
  if (!has_full_block() && blocks_.front().entries.size() < *wake_at_) return false;
  wake_at_.reset();
  return true;
}

bool ProducerQueue::flush(TimePoint deadline) {
  std::unique_lock lock{mutex_};
  const std::uint64_t target = taken_;
  ++flushing_;
  changed_.notify_one();
  const bool done =
      wait_by_clock(answered_changed_, lock, deadline, clock_, [&] { return answered_ >= target; });
  --flushing_;
  return done;
}

void ProducerQueue::close() {
  const std::lock_guard lock{mutex_};
  closed_ = true;
  changed_.notify_one();
  room_.notify_all();
}

void ProducerQueue::give_up() {
  const std::lock_guard lock{mutex_};
  given_up_ = true;
  changed_.notify_one();
}

ProducerQueue::Depth ProducerQueue::depth() const {
  const std::lock_guard lock{mutex_};
  return {.entries = entries_, .bytes = bytes_};
}

void ProducerQueue::settle(Settled& settled) {
  std::list<ProducerBlock> surplus;  // freed without the lock
  const std::lock_guard lock{mutex_};
  settle_locked(settled, surplus);
}

void ProducerQueue::settle_locked(Settled& settled, std::list<ProducerBlock>& surplus) {
  const std::size_t entries = std::exchange(settled.entries, 0);
  entries_ -= entries;
  bytes_ -= std::exchange(settled.bytes, 0);
  answered_ += std::exchange(settled.answered, 0);
  const std::size_t kept = kSpareBlocks - std::min(kSpareBlocks, spare_.size());
  const std::size_t count = std::min(kept, settled.blocks.size());
  const auto end = std::next(settled.blocks.begin(), static_cast<std::ptrdiff_t>(count));
  spare_.splice(spare_.end(), settled.blocks, settled.blocks.begin(), end);
  surplus.splice(surplus.end(), settled.blocks);
  if (entries > 0 && waiting_ > 0) room_.notify_all();
  if (flushing_ > 0) answered_changed_.notify_all();
}

bool ProducerQueue::take(Settled& settled, std::size_t outstanding,
                         std::list<ProducerBlock>& into) {
  std::list<ProducerBlock> surplus;
  const std::lock_guard lock{mutex_};
  settle_locked(settled, surplus);
  wake_at_.reset();
  if (may_go(outstanding)) {
    into.splice(into.end(), blocks_, blocks_.begin());
    return true;
  }
  if (outstanding > 0) wake_at_ = options_.linger.count() > 0 ? kOnlyFull : outstanding;
  return false;
}

bool ProducerQueue::wait_for_work() {
  std::unique_lock lock{mutex_};
  for (;;) {
    if (given_up_) return false;
    if (may_go(0)) return true;
    if (closed_) return false;
    wait_for_change(lock);
  }
}

void ProducerQueue::wait_for_change(std::unique_lock<std::mutex>& lock) {
  idle_ = true;
  if (blocks_.empty()) {
    wake_at_ = 1;
    changed_.wait(lock);
  } else {
    wake_at_ = kOnlyFull;
    changed_.wait_for(lock, std::min(lingers_until() - clock_.now(), kLongestNap));
  }
  wake_at_.reset();
  idle_ = false;
}

void ProducerQueue::pause(TimePoint deadline) {
  std::unique_lock lock{mutex_};
  wait_by_clock(changed_, lock, deadline, clock_, [&] { return given_up_; });
}

}  // namespace millrace::detail
