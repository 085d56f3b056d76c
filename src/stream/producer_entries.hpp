#pragma once

#include <millrace/producer.hpp>

#include "core/clock.hpp"
#include "core/histogram.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace millrace::detail {

/// Whom an entry's answer goes to.
using ProducerReceipt = std::variant<std::promise<StreamId>, std::function<void(const AddResult&)>>;

/// Answers; once for each. False if a callback threw.
bool deliver(ProducerReceipt& receipt, const AddResult& result) noexcept;

/// An entry that was taken.
struct ProducerEntry {
  std::size_t begin = 0;  ///< Of its command in ProducerBlock::bytes.
  std::size_t size = 0;   ///< Bytes of it.
  std::size_t fields = 0;
  TimePoint since{};  ///< When it was taken.
  ProducerReceipt receipt{};
};

/// Entries in the order in which they were taken, and how far they are.
///
/// Invariant: answered <= replied <= written <= entries.size(). From `answered` to `replied` are
/// those that the server refused and that may be sent again; from there to `written`, those whose
/// reply is outstanding.
struct ProducerBlock {
  std::string bytes{};
  std::vector<ProducerEntry> entries{};
  std::size_t answered = 0;
  std::size_t replied = 0;
  std::size_t written = 0;

  /// Leaves the block as it was if it throws.
  void add(std::string_view command, std::size_t fields, TimePoint now, ProducerReceipt&& receipt);

  std::string_view command(const ProducerEntry& entry) const {
    return std::string_view{bytes}.substr(entry.begin, entry.size);
  }

  /// What was not answered has not been written.
  void rewind() noexcept { replied = written = answered; }

  /// To be used again: keeps its memory, unless that grew beyond what is worth keeping.
  void clear() noexcept;
};

/// ProducerStats as they are counted, from any thread. Each stands alone.
struct ProducerCounters {
  /// Bounds from 1 to 65,536.
  static constexpr std::size_t kBatchBounds = 17;

  std::atomic<std::uint64_t> taken{0};
  std::atomic<std::uint64_t> appended{0};
  std::atomic<std::uint64_t> failed{0};
  std::atomic<std::uint64_t> unknown{0};
  std::atomic<std::uint64_t> refused{0};
  std::atomic<std::uint64_t> resent{0};
  std::atomic<std::uint64_t> batches{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> callback_throws{0};
  std::array<std::atomic<std::uint64_t>, kBatchBounds + 1> batch_sizes{};
  HandlerTimes latency;

  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) noexcept {
    counter.fetch_add(by, std::memory_order_relaxed);
  }
  void add_batch(std::size_t entries) noexcept;

  ProducerStats snapshot(std::size_t queued, std::size_t queued_bytes) const;
};

}  // namespace millrace::detail
