#include "net/wire_connection.hpp"

#include "net/deadline.hpp"
#include "net/exchange.hpp"
#include "net/process.hpp"
#include "protocol/server_error.hpp"

#include <fmt/format.h>
#include <cassert>
#include <utility>

namespace millrace::detail {
namespace {

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;

}  // namespace

WireConnection::WireConnection(std::unique_ptr<Transport> transport, std::string endpoint,
                               Milliseconds command_timeout, const Clock& clock)
    : transport_{std::move(transport)},
      endpoint_{std::make_shared<const std::string>(std::move(endpoint))},
      command_timeout_{command_timeout},
      clock_{&clock},
      received_{std::make_unique_for_overwrite<char[]>(kReceiveBytes)} {}

Reply WireConnection::call(const CallSpec& spec, WriteRequest write) {
  Reply reply;
  const auto result =
      exchange(spec, write, [&](std::size_t, Reply&& taken) { reply = std::move(taken); });
  if (reply.root().is_error()) server_error(reply.root(), spec.command, spec.key).raise();
  if (result.error) result.error->raise();
  assert(!reply.empty());  // `write` wrote one command
  return reply;
}

PipelineResult WireConnection::pipeline(const CallSpec& spec, WriteRequest write, TakeReply take) {
  return exchange(spec, write, take);
}

PipelineResult WireConnection::exchange(const CallSpec& spec, WriteRequest write, TakeReply take) {
  made_in_.check("this connection");
  if (!open_) return {.error = closed_error(spec)};
  if (spec.stop.stop_requested()) throw Interrupted{};
  // However this ends, also by what `write` throws: a big request gives its memory back.
  const ClearAfterUse cleared{request_};
  write(request_);

  if (spec.stop.stop_possible() || spec.hang_up.stop_possible()) arm_wakeup();
  const auto signal = [this] { wakeup_->signal(); };
  const std::stop_callback wake{spec.stop, signal};
  const std::stop_callback wake_too{spec.hang_up, signal};
  Exchange exchange{stream(wakeup_ ? &*wakeup_ : nullptr), spec, request_, take,
                    sum(command_timeout_, spec.block)};
  // However this ends: with a reply outstanding there is no next call.
  const CloseUnlessClean guard{*this, exchange};
  return exchange.run();
}

PipelineResult WireConnection::converse(const CallSpec& spec, WriteMore more, TakeReply take,
                                        const Wakeup& wakeup) {
  made_in_.check("this connection");
  if (!open_) return {.error = closed_error(spec)};
  const ClearAfterUse cleared{request_};
  const std::stop_callback wake{spec.stop, [&wakeup] { wakeup.signal(); }};
  Exchange exchange{stream(&wakeup), spec, request_, more, take, sum(command_timeout_, spec.block)};
  const CloseUnlessClean guard{*this, exchange};
  return exchange.run();
}

Error WireConnection::closed_error(const CallSpec& spec) const {
  return IoError{fmt::format("{}: the connection is closed", subject(spec, *endpoint_)),
                 Outcome::kNotApplied};
}

Exchange::Stream WireConnection::stream(const Wakeup* wakeup) {
  return {.transport = *transport_,
          .reader = reader_,
          .buffer = {received_.get(), kReceiveBytes},
          .wakeup = wakeup,
          .clock = *clock_,
          .endpoint = endpoint_};
}

void WireConnection::arm_wakeup() {
  if (wakeup_) {
    wakeup_->reset();
  } else {
    wakeup_.emplace();
  }
}

void WireConnection::close() noexcept {
  open_ = false;
  transport_->close();
}

}  // namespace millrace::detail
