#include "core/batch_storage.hpp"
#include "protocol/decode.hpp"
#include "protocol/decode_entry.hpp"
#include "protocol/decode_values.hpp"

#include <cstddef>
#include <utility>

namespace millrace::detail::decode {
namespace {

struct Size {
  std::size_t entries = 0;
  std::size_t fields = 0;
};

/// Counts what is there, not what was announced: memory follows the bytes that came.
std::size_t size_of(ReplyView reply) {
  std::size_t count = 0;
  for (auto at = reply.begin(); at != reply.end(); ++at) ++count;
  return count;
}

void measure(ReplyView entries, Size& size) {
  for (const ReplyView entry : list(entries, "a list of entries")) {
    ++size.entries;
    size.fields += size_of(entry[1]) / 2;
  }
}

void add(ReplyView entries, BatchStorage& storage) {
  for (const ReplyView element : entries) {
    // XCLAIM and XAUTOCLAIM of Redis 6.2: an entry that is no longer in the stream.
    if (!element.is_nil()) entry(element, storage);
  }
}

/// Calls `visit` with the entries of each stream in the reply of a read: pairs in RESP2, a map in
/// RESP3, in which a stream that was named twice is there twice.
template <typename Visit>
void for_each_stream(ReplyView reply, Visit visit) {
  constexpr std::string_view kWhat = "the reply to a read";
  if (reply.is_nil()) return;
  if (reply.kind() == ReplyKind::kMap) {
    for_each_pair(reply, kWhat, [&](std::string_view, ReplyView entries) { visit(entries); });
    return;
  }
  Elements streams{reply, kWhat, "a list of streams"};
  while (!streams.done()) {
    Elements stream{streams.next(), "a stream of a read", "a key and entries"};
    text(stream.next(), "a stream's key");
    visit(stream.next());
  }
}

EntryBatch finish(BatchStorage storage, Reply reply) {
  storage.keep(std::move(reply).release_bytes());
  return std::move(storage).to_batch();
}

}  // namespace

EntryBatch entries(Reply reply) {
  if (reply.root().kind() == ReplyKind::kEntries) return std::move(reply).take_entries();
  Size size;
  measure(reply.root(), size);
  BatchStorage storage;
  storage.start_reply(size.entries, size.fields);
  add(reply.root(), storage);
  return finish(std::move(storage), std::move(reply));
}

EntryBatch read(Reply reply) {
  if (reply.root().kind() == ReplyKind::kEntries) return std::move(reply).take_entries();
  Size size;
  for_each_stream(reply.root(), [&size](ReplyView entries) { measure(entries, size); });
  BatchStorage storage;
  storage.start_reply(size.entries, size.fields);
  for_each_stream(reply.root(), [&storage](ReplyView entries) { add(entries, storage); });
  return finish(std::move(storage), std::move(reply));
}

AutoclaimPage autoclaim(Reply reply) {
  AutoclaimPage page;
  Elements slots{reply.root(), "the reply to XAUTOCLAIM", "a cursor, entries and deleted ids"};
  page.next_cursor = stream_id(slots.next(), "the cursor of XAUTOCLAIM");
  const ReplyView claimed = slots.next();
  if (!slots.done()) page.deleted_ids = ids(slots.next());
  if (claimed.kind() == ReplyKind::kEntries) {
    page.claimed = std::move(reply).take_entries();
    return page;
  }

  Size size;
  measure(claimed, size);
  BatchStorage storage;
  storage.start_reply(size.entries, size.fields);
  add(claimed, storage);
  page.claimed = finish(std::move(storage), std::move(reply));
  return page;
}

std::uint64_t count(ReplyView reply) { return unsigned_integer(reply, "a count"); }

StreamId id(ReplyView reply) { return stream_id(reply, "an id"); }

std::vector<StreamId> ids(ReplyView reply) {
  std::vector<StreamId> ids;
  for (const ReplyView each : list(reply, "a list of ids")) {
    // JUSTID of Redis 6.2 has no nulls, but nothing can be said of one either.
    if (!each.is_nil()) ids.push_back(id(each));
  }
  return ids;
}

std::optional<StreamId> added(ReplyView reply) {
  if (reply.is_nil()) return std::nullopt;
  return stream_id(reply, "the reply to XADD");
}

}  // namespace millrace::detail::decode
