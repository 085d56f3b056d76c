#pragma once

#include <millrace/event_stream.hpp>
#include <millrace/producer.hpp>

#include "core/clock.hpp"
#include "net/process.hpp"
#include "net/wakeup.hpp"
#include "protocol/commands.hpp"
#include "stream/producer_entries.hpp"
#include "stream/producer_queue.hpp"
#include "stream/producer_sender.hpp"

#include <stop_token>
#include <string_view>
#include <thread>

namespace millrace::detail {

/// What is behind a Producer: its queue, its sender, and the thread that the sender runs on.
class ProducerCore {
 public:
  ProducerCore(const EventStream& stream, const ProducerOptions& options);
  /// Over connections of the caller's choice.
  ProducerCore(const EventStream& stream, const ProducerOptions& options,
               ProducerSender::Connect connect, const Clock& clock);
  ProducerCore(const ProducerCore&) = delete;
  ProducerCore& operator=(const ProducerCore&) = delete;
  ~ProducerCore();

  void send(const Fields& fields, ProducerReceipt receipt);
  bool flush(Milliseconds timeout);
  ProducerStats stats() const;

  /// False in a child after fork(): there the thread is not, and locks may be as it left them.
  bool is_here() const noexcept { return made_in_.is_here(); }

 private:
  bool is_in_callback() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }

  const EventStream stream_;
  const ProducerOptions options_;
  const Clock& clock_;
  const HomeProcess made_in_;
  const commands::AddTerms widest_;  ///< As the command with the most words has them.
  ProducerCounters counters_;
  Wakeup wakeup_;
  ProducerQueue queue_;
  ProducerSender sender_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace millrace::detail
