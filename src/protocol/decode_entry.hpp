#pragma once

#include "protocol/decode_values.hpp"

namespace millrace::detail::decode {

/// Hands one entry to `sink`, which has the adding functions of BatchStorage.
///
/// A pending entry whose payload is gone arrives as [id, null]: deleted, not malformed. XREADGROUP
/// CLAIM (Redis 8.4) appends idle time and delivery count, so what follows the fields is skipped.
template <typename Sink>
void entry(ReplyView reply, Sink& sink) {
  Elements parts{reply, "an entry", "an id and fields"};
  const StreamId id = stream_id(parts.next(), "an entry's id");
  const ReplyView fields = parts.next();
  if (fields.is_nil()) {
    sink.add_deleted(id);
    return;
  }
  sink.add_entry(id);
  for_each_pair(fields, "an entry's fields", [&sink](std::string_view name, ReplyView value) {
    sink.add_field(name, text(value, "a field's value"));
  });
}

}  // namespace millrace::detail::decode
