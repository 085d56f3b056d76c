#pragma once

#include <millrace/producer.hpp>

#include "core/clock.hpp"
#include "net/wakeup.hpp"
#include "stream/producer_entries.hpp"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string_view>

namespace millrace::detail {

/// Where the entries of all threads gather, in blocks of at most a batch: one mutex, no I/O.
///
/// Invariant: no block in here is empty, and all but the last are as full as they get. `entries_`
/// and `bytes_` are those of all entries that were taken and not settled, wherever they are.
/// Whoever makes it true that the sender may go on (see `wake_at_`) wakes it, once. Blocks move by
/// splicing, so nothing is allocated while their number stays the same.
class ProducerQueue {
 public:
  /// What the sender has done since it last said so.
  struct Settled {
    std::size_t entries = 0;  ///< Places that are free.
    std::size_t bytes = 0;
    std::uint64_t answered = 0;         ///< Entries whose receipt has been dealt with.
    std::list<ProducerBlock> blocks{};  ///< All answered.
  };

  struct Depth {
    std::size_t entries = 0;
    std::size_t bytes = 0;
  };

  /// `wakeup` ends the sender's wait for replies.
  ProducerQueue(const ProducerOptions& options, const Wakeup& wakeup, const Clock& clock)
      : options_{options}, wakeup_{wakeup}, clock_{clock} {}

  // ---- from any thread

  /// Takes an entry. Throws TimeoutError if there is no room for it within `patience`, IoError if
  /// the queue is closed, InvalidArgument if it can never fit.
  void add(std::string_view command, std::size_t fields, ProducerReceipt&& receipt,
           Milliseconds patience);

  /// Waits until what was taken before is answered; false if it is not by then.
  bool flush(TimePoint deadline);

  /// Nothing is taken from now on; what is here goes without lingering.
  void close();
  /// The sender waits for nothing any more.
  void give_up();

  Depth depth() const;

  // ---- from the sender

  /// Publishes what was settled, and empties it.
  void settle(Settled& settled);

  /// The same; then moves the next batch to the end of `into` if there is one that may go while so
  /// many replies are outstanding: with none, any that has lingered; else a full one, or one as big
  /// as what is outstanding. If there is none, the sender is woken as soon as there is.
  bool take(Settled& settled, std::size_t outstanding, std::list<ProducerBlock>& into);

  /// Waits until a batch may go while no reply is outstanding. False: there is none, and will be
  /// none, or giving up has begun.
  bool wait_for_work();

  /// Waits until `deadline`, or until giving up has begun.
  void pause(TimePoint deadline);

 private:
  bool has_room(std::size_t bytes) const noexcept;
  bool is_full(const ProducerBlock& block) const noexcept;
  bool has_full_block() const noexcept;
  bool may_go(std::size_t outstanding) const noexcept;
  TimePoint lingers_until() const noexcept;
  ProducerBlock& block_for(std::size_t bytes);
  void settle_locked(Settled& settled, std::list<ProducerBlock>& surplus);
  bool take_wake() noexcept;
  void wait_for_change(std::unique_lock<std::mutex>& lock);
  [[noreturn]] void refuse(Milliseconds patience) const;

  static constexpr std::size_t kSpareBlocks = 8;

  const ProducerOptions& options_;
  const Wakeup& wakeup_;
  const Clock& clock_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;  ///< For the sender, while it is idle.
  std::condition_variable room_;     ///< For those who wait to add.
  std::condition_variable answered_changed_;
  std::list<ProducerBlock> blocks_;
  std::list<ProducerBlock> spare_;
  std::size_t entries_ = 0;
  std::size_t bytes_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t answered_ = 0;
  std::size_t waiting_ = 0;   ///< For room.
  std::size_t flushing_ = 0;  ///< Callers of flush().
  /// So many entries in the first block, or a full one, are worth waking the sender for. None: it
  /// does not wait, or has been woken.
  std::optional<std::size_t> wake_at_{};
  bool idle_ = false;  ///< It waits for `changed_`, and else for replies.
  bool closed_ = false;
  bool given_up_ = false;
};

}  // namespace millrace::detail
