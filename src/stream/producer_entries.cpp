#include "stream/producer_entries.hpp"

#include <millrace/error.hpp>

#include <algorithm>
#include <bit>
#include <exception>
#include <utility>

namespace millrace::detail {
namespace {

/// A block that once held much is not kept at that size.
constexpr std::size_t kBlockWorthKeeping = std::size_t{1} << 20;

std::exception_ptr exception_of(const Error& error) noexcept {
  try {
    error.raise();
  } catch (...) {
    return std::current_exception();
  }
}

void fulfil(std::promise<StreamId> promise, const AddResult& result) noexcept {
  if (result.error) {
    promise.set_exception(exception_of(*result.error));
  } else {
    promise.set_value(*result.id);
  }
}

}  // namespace

bool deliver(ProducerReceipt& receipt, const AddResult& result) noexcept {
  // Taken out, so that what it holds goes before its entry counts as answered.
  if (auto* promise = std::get_if<std::promise<StreamId>>(&receipt)) {
    fulfil(std::move(*promise), result);
    return true;
  }
  const auto done = std::move(std::get<std::function<void(const AddResult&)>>(receipt));
  try {
    done(result);
  } catch (...) {
    return false;
  }
  return true;
}

void ProducerBlock::add(std::string_view command, std::size_t fields, TimePoint now,
                        ProducerReceipt&& receipt) {
  const std::size_t begin = bytes.size();
  bytes.append(command);  // if the next line throws, these bytes are nobody's
  entries.push_back({.begin = begin,
                     .size = command.size(),
                     .fields = fields,
                     .since = now,
                     .receipt = std::move(receipt)});
}

void ProducerBlock::clear() noexcept {
  bytes.clear();
  entries.clear();
  answered = replied = written = 0;
  if (bytes.capacity() > kBlockWorthKeeping) std::string{}.swap(bytes);
}

void ProducerCounters::add_batch(std::size_t entries) noexcept {
  add(batches);
  const auto doublings = static_cast<std::size_t>(std::bit_width(entries - 1));
  add(batch_sizes[std::min(doublings, kBatchBounds)]);
}

ProducerStats ProducerCounters::snapshot(std::size_t queued, std::size_t queued_bytes) const {
  const auto of = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  const std::uint64_t made = of(connections);
  ProducerStats stats{.taken = of(taken),
                      .appended = of(appended),
                      .failed = of(failed),
                      .unknown = of(unknown),
                      .refused = of(refused),
                      .resent = of(resent),
                      .batches = of(batches),
                      .reconnects = made > 0 ? made - 1 : 0,
                      .callback_throws = of(callback_throws),
                      .queued = queued,
                      .queued_bytes = queued_bytes,
                      .latency = latency.snapshot()};
  for (std::size_t i = 0; i < kBatchBounds; ++i) {
    stats.batch_sizes.bounds.push_back(std::size_t{1} << i);
  }
  for (const auto& count : batch_sizes) stats.batch_sizes.counts.push_back(of(count));
  return stats;
}

}  // namespace millrace::detail
