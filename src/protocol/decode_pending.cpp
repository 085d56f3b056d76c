#include "protocol/decode.hpp"
#include "protocol/decode_values.hpp"

namespace millrace::detail::decode {
namespace {

std::optional<StreamId> optional_id(ReplyView reply, std::string_view what) {
  if (reply.is_nil()) return std::nullopt;
  return stream_id(reply, what);
}

ConsumerPending consumer_pending(ReplyView reply) {
  Elements parts{reply, "a consumer of XPENDING", "a name and a count"};
  ConsumerPending consumer;
  consumer.name = text(parts.next(), "a consumer's name");
  consumer.count = unsigned_integer(parts.next(), "a consumer's count");
  return consumer;
}

/// An entry that was given back to nobody (XNACK, Redis 8.8) has an empty owner, an idle time of −1
/// and any count up to 2^63 − 1.
PendingEntry pending_entry(ReplyView reply) {
  Elements parts{reply, "an entry of XPENDING", "an id, a consumer, an idle time and a count"};
  PendingEntry entry;
  entry.id = stream_id(parts.next(), "a pending entry's id");
  entry.consumer = text(parts.next(), "a pending entry's consumer");
  entry.idle = optional_duration(parts.next(), "a pending entry's idle time");
  entry.deliveries = integer(parts.next(), "a pending entry's delivery count");
  return entry;
}

}  // namespace

PendingSummary pending(ReplyView reply) {
  Elements parts{reply, "the reply to XPENDING", "a count, two ids and consumers"};
  PendingSummary summary;
  summary.count = unsigned_integer(parts.next(), "the count of XPENDING");
  summary.lowest = optional_id(parts.next(), "the lowest id of XPENDING");
  summary.highest = optional_id(parts.next(), "the highest id of XPENDING");
  for (const ReplyView each : list(parts.next(), "the consumers of XPENDING")) {
    summary.consumers.push_back(consumer_pending(each));
  }
  return summary;
}

std::vector<PendingEntry> pending_entries(ReplyView reply) {
  std::vector<PendingEntry> entries;
  for (const ReplyView each : list(reply, "the reply to XPENDING")) {
    entries.push_back(pending_entry(each));
  }
  return entries;
}

}  // namespace millrace::detail::decode
