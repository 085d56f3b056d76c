#pragma once

#include <cstdint>

namespace millrace::detail {

/// What a reply looks like, where that is worth knowing before it comes: entries in great number.
/// Errors, null and whatever else a server answers can still come in its place.
enum class ReplyShape : std::uint8_t {
  kAny,
  kEntries,    ///< [entry, ...]: XRANGE, XREVRANGE, XCLAIM.
  kRead,       ///< [[key, [entry, ...]]], in RESP3 a map: XREAD, XREADGROUP of one stream.
  kAutoclaim,  ///< [cursor, [entry, ...], [deleted id, ...]]: XAUTOCLAIM.
};

}  // namespace millrace::detail
