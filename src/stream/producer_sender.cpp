#include "stream/producer_sender.hpp"

#include "net/deadline.hpp"
#include "protocol/server_error.hpp"
#include "stream/append.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

namespace millrace::detail {
namespace {

constexpr std::size_t kBatchesUnderWay = 2;

/// Whether another try can help only on another connection: the server is not this key's master.
bool is_elsewhere(const Error& error) noexcept {
  return error.code() == Error::Code::kReadOnly || error.code() == Error::Code::kCluster;
}

}  // namespace

ProducerSender::ProducerSender(const Surroundings& around, Connect connect)
    : around_{around},
      connect_{std::move(connect)},
      backoff_{around.options.reconnect_min, around.options.reconnect_max} {
  batches_.reserve(kBatchesUnderWay);
}

void ProducerSender::run(std::stop_token stop) {
  stop_ = std::move(stop);
  while (!stop_.stop_requested() && (!outgoing_.empty() || around_.queue.wait_for_work())) {
    round();
    around_.queue.settle(settled_);
  }
  give_up();
}

/// Nothing is under way: connects if it has to, and sends until there is nothing more to send.
void ProducerSender::round() {
  answer_overdue();
  if (outgoing_.empty() || !connect()) return;
  conclude(converse());
}

bool ProducerSender::take_block() { return around_.queue.take(settled_, outstanding(), outgoing_); }

/// What could not be sent for too long gets the reason for an answer.
void ProducerSender::answer_overdue() {
  const TimePoint now = around_.clock.now();
  while (!outgoing_.empty() || take_block()) {
    const ProducerBlock& first = outgoing_.front();
    const TimePoint since = first.entries[first.answered].since;
    if (!trouble_ || now < after(since, around_.options.delivery_timeout)) return;
    answer_next({.error = reason()});
  }
}

Error ProducerSender::reason() const {
  if (trouble_) return with_outcome(*trouble_, Outcome::kNotApplied);
  return TimeoutError{
      fmt::format("XADD on '{}': the producer was destroyed, and close_timeout ({} ms) was too "
                  "short to send all that was queued; it was not sent",
                  around_.key, around_.options.close_timeout.count()),
      Outcome::kNotApplied};
}

bool ProducerSender::has_connection() {
  if (connection_ && !connection_->is_quiet()) connection_.reset();
  return connection_ != nullptr;
}

bool ProducerSender::connect() {
  if (has_connection()) return true;
  try {
    connection_ = connect_(stop_);
    ProducerCounters::add(around_.counters.connections);
    probing_ = true;
    was_of_use_ = false;
    return true;
  } catch (const Interrupted&) {
    return false;
  } catch (const Error& error) {
    trouble_ = error;
  } catch (const std::exception& error) {  // of the application's function for credentials
    trouble_ = ProtocolError{error.what(), Outcome::kNotApplied};
  }
  pause();
  return false;
}

PipelineResult ProducerSender::converse() {
  try {
    return connection_->converse(
        {.command = "XADD", .key = around_.key, .stop = stop_},
        [this](RequestBuffer& request) { write_more(request); },
        [this](std::size_t, const Reply& reply) { take_reply(reply); }, around_.wakeup);
  } catch (const std::exception& error) {  // no memory: nobody knows what has been sent
    return {.sent = std::numeric_limits<std::size_t>::max(),
            .error = ProtocolError{error.what(), Outcome::kUnknown}};
  }
}

void ProducerSender::write_more(RequestBuffer& request) {
  ProducerBlock* block = unwritten();
  const bool may =
      !refusal_ && !stop_.stop_requested() && batches_.size() < (probing_ ? 1 : kBatchesUnderWay);
  if (may && block == nullptr) {
    if (take_block()) block = &outgoing_.back();
  } else {
    around_.queue.settle(settled_);
  }
  if (may && block != nullptr) write(*block, request);
}

/// What is left of the block, as one batch.
void ProducerSender::write(ProducerBlock& block, RequestBuffer& request) {
  const std::size_t count = probing_ ? 1 : block.entries.size() - block.written;
  const std::size_t end = block.written + count;
  for (; block.written + 1 < end; ++block.written) {
    request.add_encoded(block.command(block.entries[block.written]));
  }
  const ProducerEntry& last = block.entries[block.written];
  if (around_.retention) {
    terms_.trim = commands::trim_terms(*around_.retention, std::chrono::system_clock::now());
    commands::xadd_with_trim(request, around_.key, *terms_.trim, block.command(last), last.fields);
  } else {
    request.add_encoded(block.command(last));
  }
  ++block.written;
  batches_.push_back(count);
  around_.counters.add_batch(count);
}

void ProducerSender::take_reply(const Reply& reply) {
  const auto block =
      std::find_if(outgoing_.begin(), outgoing_.end(),
                   [](const ProducerBlock& each) { return each.replied < each.written; });
  ++block->replied;
  if (--batches_.front() == 0) batches_.erase(batches_.begin());
  const AddResult result = result_of(reply);
  if (result.error && result.error->retryable() &&
      result.error->outcome() == Outcome::kNotApplied) {
    refusal_ = result.error;  // held
    return;
  }
  if (result.id) {
    trouble_.reset();
    backoff_.reset();
    probing_ = false;
    was_of_use_ = true;
  }
  answer_held(held() - 1);  // but for this one
  answer_next(result);
}

AddResult ProducerSender::result_of(const Reply& reply) const {
  const ReplyView root = reply.root();
  if (root.is_error()) {
    return {.error = append_error(server_error(root, "XADD", around_.key), terms_)};
  }
  try {
    return {.id = added(root, terms_)};
  } catch (const ProtocolError& error) {
    return {.error = in_context(
                error, {.command = "XADD", .key = around_.key, .endpoint = root.endpoint()})};
  }
}

void ProducerSender::conclude(const PipelineResult& result) {
  batches_.clear();
  if (result.error) break_off(result);
  if (refusal_) return send_refused_again();
  rewind();
  if (result.error && !was_of_use_) pause();
}

/// The connection broke: what was sent whole is in doubt, and nothing else.
void ProducerSender::break_off(const PipelineResult& result) {
  const std::size_t replies = std::min(result.replies, result.sent);
  const std::size_t in_doubt = std::min(outstanding(), result.sent - replies);
  connection_.reset();
  trouble_ = result.error;
  if (in_doubt == 0) return;
  answer_held(held());
  const AddResult unknown{.error = with_outcome(*result.error, Outcome::kUnknown)};
  for (std::size_t i = 0; i < in_doubt; ++i) answer_next(unknown);
}

void ProducerSender::send_refused_again() {
  if (is_elsewhere(*refusal_)) connection_.reset();
  trouble_ = std::exchange(refusal_, std::nullopt);
  probing_ = true;
  rewind();
  pause();
}

void ProducerSender::rewind() {
  std::size_t again = 0;
  for (ProducerBlock& block : outgoing_) {
    again += block.written - block.answered;
    block.rewind();
  }
  ProducerCounters::add(around_.counters.resent, again);
}

/// Before another try; not beyond the time at which the first entry is overdue.
void ProducerSender::pause() {
  around_.queue.settle(settled_);
  TimePoint until = after(around_.clock.now(), backoff_.next());
  if (!outgoing_.empty()) {
    const ProducerBlock& first = outgoing_.front();
    until = std::min(until,
                     after(first.entries[first.answered].since, around_.options.delivery_timeout));
  }
  around_.queue.pause(until);
}

void ProducerSender::give_up() {
  while (!outgoing_.empty() || take_block()) answer_next({.error = reason()});
  around_.queue.settle(settled_);
}

/// Those that were refused and cannot be sent again, since a later one has its answer.
void ProducerSender::answer_held(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) answer_next({.error = refusal_});
  refusal_.reset();
}

/// Answers the first entry that has no answer.
void ProducerSender::answer_next(const AddResult& result) {
  ProducerBlock& block = outgoing_.front();
  ProducerEntry& entry = block.entries[block.answered];
  ++block.answered;
  block.replied = std::max(block.replied, block.answered);
  block.written = std::max(block.written, block.answered);
  settled_.bytes += entry.size;
  ++settled_.entries;
  count(result, entry.since);
  if (!deliver(entry.receipt, result)) ProducerCounters::add(around_.counters.callback_throws);
  ++settled_.answered;
  if (block.answered < block.entries.size()) return;
  block.clear();
  settled_.blocks.splice(settled_.blocks.end(), outgoing_, outgoing_.begin());
}

void ProducerSender::count(const AddResult& result, TimePoint since) {
  ProducerCounters& counters = around_.counters;
  if (result.id) {
    ProducerCounters::add(counters.appended);
    counters.latency.add(around_.clock.now() - since);
  } else {
    const bool in_doubt = result.error->outcome() == Outcome::kUnknown;
    ProducerCounters::add(in_doubt ? counters.unknown : counters.failed);
  }
}

ProducerBlock* ProducerSender::unwritten() noexcept {
  const auto block =
      std::find_if(outgoing_.begin(), outgoing_.end(),
                   [](const ProducerBlock& each) { return each.written < each.entries.size(); });
  return block == outgoing_.end() ? nullptr : &*block;
}

std::size_t ProducerSender::outstanding() const noexcept {
  std::size_t count = 0;
  for (const ProducerBlock& block : outgoing_) count += block.written - block.replied;
  return count;
}

std::size_t ProducerSender::held() const noexcept {
  std::size_t count = 0;
  for (const ProducerBlock& block : outgoing_) count += block.replied - block.answered;
  return count;
}

}  // namespace millrace::detail
