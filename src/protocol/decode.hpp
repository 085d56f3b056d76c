#pragma once

#include <millrace/entry.hpp>
#include <millrace/stream_info.hpp>

#include "protocol/reply.hpp"

#include <cstdint>
#include <optional>
#include <vector>

/// Replies as values. Each function takes what RESP2 and RESP3 give, skips fields that it does not
/// know, and throws ProtocolError, which names the surprise, for everything else. Where a reply is
/// taken by value, the result owns its bytes.
namespace millrace::detail::decode {

/// A number that cannot be negative: an integer, or text as XPENDING has it.
std::uint64_t count(ReplyView reply);

StreamId id(ReplyView reply);
std::vector<StreamId> ids(ReplyView reply);

/// XADD. nullopt: NOMKSTREAM, and there is no stream.
std::optional<StreamId> added(ReplyView reply);

/// XRANGE, XREVRANGE, XCLAIM: a list of entries. Null is empty.
EntryBatch entries(Reply reply);

/// XREAD, XREADGROUP: the entries of all streams in the reply. Null, no stream, and a stream
/// without entries are all empty.
EntryBatch read(Reply reply);

/// XAUTOCLAIM. A reply of two slots (Redis 6.2) has no deleted ids, and nulls among its entries.
AutoclaimPage autoclaim(Reply reply);

PendingSummary pending(ReplyView reply);
std::vector<PendingEntry> pending_entries(ReplyView reply);

StreamInfo stream_info(ReplyView reply);
FullStreamInfo full_stream_info(ReplyView reply);
std::vector<GroupInfo> groups(ReplyView reply);
std::vector<ConsumerInfo> consumers(ReplyView reply);

}  // namespace millrace::detail::decode
