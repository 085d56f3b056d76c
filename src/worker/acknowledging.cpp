#include "worker/acknowledging.hpp"

#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/server_error.hpp"
#include "worker/shared.hpp"

#include <algorithm>
#include <utility>

namespace millrace::detail {

Acknowledging::Acknowledging(const Shared& shared, std::size_t limit)
    : Acknowledging{shared, shared.ledger.take_acks(limit)} {}

Acknowledging::Acknowledging(const Shared& shared, AckBatch acks)
    : shared_{shared}, acks_{std::move(acks)} {}

Acknowledging::~Acknowledging() {
  if (settled_) {
    tell();
  } else {
    shared_.ledger.not_acknowledged(acks_);
  }
}

void Acknowledging::write(RequestBuffer& request) const {
  if (acks_.ids.empty()) return;
  commands::xack(request, shared_.config.key, shared_.config.group, acks_.ids);
}

void Acknowledging::settle(ReplyView reply) {
  if (reply.is_error()) {
    error_ = server_error(reply.text(), {.command = "XACK", .key = shared_.config.key});
    return;
  }
  acknowledged_ = std::min<std::size_t>(decode::count(reply), acks_.ids.size());
  settled_ = true;
  count(shared_.counters.leases_lost, shared_.ledger.acknowledged(acks_, acknowledged_));
}

void Acknowledging::tell() noexcept {
  if (!settled_ || std::exchange(told_, true)) return;
  shared_.events.tell(
      [&](Observer& observer) { observer.on_acknowledged(acks_.ids, acknowledged_); });
}

void Acknowledging::send(Send send) {
  if (acks_.ids.empty()) return;
  const PipelineResult result = send(
      {.command = "XACK", .key = shared_.config.key},
      [&](RequestBuffer& request) { write(request); },
      [&](std::size_t /*index*/, Reply reply) { settle(reply.root()); });
  tell();
  if (result.error) result.error->raise();
  if (error_) error_->raise();
}

}  // namespace millrace::detail
