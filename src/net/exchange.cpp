#include "net/exchange.hpp"

#include "core/printable.hpp"
#include "net/deadline.hpp"
#include "protocol/server_error.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

namespace millrace::detail {

using Status = IoResult::Status;

std::string subject(const CallSpec& spec, std::string_view endpoint) {
  if (spec.key.empty()) return fmt::format("{} at {}", spec.command, endpoint);
  return fmt::format("{} on '{}' at {}", spec.command, printable(spec.key), endpoint);
}

Exchange::Exchange(Stream stream, const CallSpec& spec, RequestBuffer& request, TakeReply take,
                   Milliseconds limit) noexcept
    : stream_{stream},
      spec_{spec},
      request_{request},
      take_{take},
      limit_{limit},
      deadline_{spec.deadline ? *spec.deadline : after(stream.clock.now(), limit)},
      unsent_{request.bytes()} {}

Exchange::Exchange(Stream stream, const CallSpec& spec, RequestBuffer& request, WriteMore more,
                   TakeReply take, Milliseconds limit) noexcept
    : Exchange{stream, spec, request, take, limit} {
  more_ = more;
}

PipelineResult Exchange::run() {
  Failure error;
  try {
    error = converse();
  } catch (const Interrupted&) {
    if (!more_) throw;
    error = stopped();
  }
  if (error && hung_up_) throw Interrupted{};
  // An early error reply stands for a command that was not sent whole: it counts as sent.
  return {.replies = replies_, .sent = std::max(sent_whole(), replies_), .error = std::move(error)};
}

Exchange::Failure Exchange::converse() {
  for (;;) {
    if (auto failure = send()) return failure;
    if (is_done()) return {};
    if (!more_to_read_) {
      if (auto failure = wait()) return failure;
    }
    if (auto failure = receive()) return failure;
    // wait() alone would never see the deadline while a peer trickles bytes.
    if (!is_done() && stream_.clock.now() >= deadline()) return timed_out();
  }
}

/// Not before all is sent: a peer that does not read has enough to do. Nor after what nobody asked
/// for: it would answer the next command.
bool Exchange::write_more() {
  if (!more_ || surplus_ || (is_done() && !stream_.reader.is_drained())) return false;
  cleared_ += request_.commands();
  request_.clear();
  (*more_)(request_);
  unsent_ = request_.bytes();
  if (unsent_.empty()) return false;
  const TimePoint due = spec_.deadline.value_or(after(stream_.clock.now(), limit_));
  pieces_.push_back({.end = commands(), .deadline = due});
  return true;
}

Exchange::Failure Exchange::send() {
  wants_to_write_ = false;
  while (!unsent_.empty() || write_more()) {
    const IoResult io = stream_.transport.send(unsent_);
    switch (io.status) {
      case Status::kDone:
        unsent_.remove_prefix(io.bytes);
        break;
      case Status::kWantRead:
        return {};
      case Status::kWantWrite:
        wants_to_write_ = true;
        return {};
      case Status::kEnd:
      case Status::kFailed:
        read_last_words();
        return broken(io);
    }
  }
  return {};
}

/// A server that turns a client away says why, and then closes: the reason is worth more than
/// "broken pipe".
void Exchange::read_last_words() {
  for (;;) {
    const IoResult io = stream_.transport.receive(stream_.buffer);
    if (io.status != Status::kDone) return;
    stream_.reader.feed({stream_.buffer.data(), io.bytes});
    if (take_replies()) return;
  }
}

Exchange::Failure Exchange::wait() {
  heed_stops();
  const Interest interest{.readable = true, .writable = wants_to_write_};
  switch (stream_.transport.wait(interest, stream_.wakeup, deadline())) {
    case Waited::kReady:
      return {};
    case Waited::kWoken:
      heed_stops();
      stream_.wakeup->reset();
      return {};
    case Waited::kTimedOut:
      break;
  }
  return timed_out();
}

void Exchange::heed_stops() {
  if (spec_.stop.stop_requested()) throw Interrupted{};
  if (!spec_.hang_up.stop_requested() || std::exchange(hung_up_, true)) return;
  stream_.transport.finish_sending();
}

Exchange::Failure Exchange::receive() {
  more_to_read_ = false;
  const IoResult io = stream_.transport.receive(stream_.buffer);
  switch (io.status) {
    case Status::kDone:
      more_to_read_ = io.bytes == stream_.buffer.size();
      stream_.reader.feed({stream_.buffer.data(), io.bytes});
      return take_replies();
    case Status::kWantRead:
      return {};
    case Status::kWantWrite:
      wants_to_write_ = true;
      return {};
    case Status::kEnd:
    case Status::kFailed:
      break;
  }
  return broken(io);
}

Exchange::Failure Exchange::take_replies() {
  for (;;) {
    Reply reply;
    try {
      if (!stream_.reader.next(reply, shape_of_next())) return {};
    } catch (const ProtocolError& error) {
      return ProtocolError{fmt::format("{}: {}", about(), error.what()), outcome()};
    } catch (const IoError& error) {
      return IoError{fmt::format("{}: {}", about(), error.what()), outcome()};
    }
    if (auto failure = take_one(std::move(reply))) return failure;
  }
}

/// Of a command whose bytes are gone nothing is known any more, and any reply can be read.
ReplyShape Exchange::shape_of_next() const noexcept {
  return replies_ < cleared_ ? ReplyShape::kAny : request_.shape_of(replies_ - cleared_);
}

Exchange::Failure Exchange::take_one(Reply&& reply) {
  if (is_done()) {
    surplus_ = true;
    return {};
  }
  // An error may come early, from a server that does not want to read the rest.
  const bool is_early = replies_ >= sent_whole();
  if (is_early && !reply.root().is_error()) {
    return ProtocolError{fmt::format("{}: a reply came before the command was sent", about()),
                         outcome()};
  }
  reply.came_from(stream_.endpoint);
  take_(replies_, std::move(reply));
  ++replies_;
  if (!pieces_.empty() && replies_ == pieces_.front().end) pieces_.erase(pieces_.begin());
  return {};
}

/// What its messages begin with.
std::string Exchange::about() const { return subject(spec_, *stream_.endpoint); }

/// Commands of which every byte was sent.
std::size_t Exchange::sent_whole() const noexcept {
  if (unsent_.empty()) return commands();
  const auto sent = request_.bytes().size() - unsent_.size();
  const auto ends = request_.ends();
  return cleared_ +
         static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), sent) - ends.begin());
}

/// Of the commands that have no reply: those that were not sent whole have not run.
Outcome Exchange::outcome() const noexcept {
  return sent_whole() > replies_ ? Outcome::kUnknown : Outcome::kNotApplied;
}

Error Exchange::broken(const IoResult& io) const {
  const auto why = io.status == Status::kEnd ? "the server closed the connection"
                                             : system_message(io.error_number);
  return IoError{fmt::format("{}: {}; {}", about(), why, effect(outcome())), outcome()};
}

Error Exchange::stopped() const {
  return IoError{fmt::format("{}: stopped before the reply came; {}", about(), effect(outcome())),
                 outcome()};
}

Error Exchange::timed_out() const {
  return TimeoutError{
      fmt::format("{}: no reply within {} ms; {}", about(), limit_.count(), effect(outcome())),
      outcome()};
}

}  // namespace millrace::detail
