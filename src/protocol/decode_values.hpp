#pragma once

#include <millrace/error.hpp>
#include <millrace/stream_id.hpp>

#include "protocol/reply.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

/// The small parts that all decoders share. `what` names a value in the error that is thrown where
/// it is not what it has to be.
namespace millrace::detail::decode {

/// What `reply` is, in words: "an array of 3", "null".
std::string describe(ReplyView reply);

/// Throws ProtocolError: "`what` is `describe(reply)`, not `expected`".
[[noreturn]] void surprise(std::string_view what, ReplyView reply, std::string_view expected);

std::string_view text(ReplyView reply, std::string_view what);
StreamId stream_id(ReplyView reply, std::string_view what);

/// Numbers come as integers or, from XPENDING, as text.
std::int64_t integer(ReplyView reply, std::string_view what);
std::uint64_t unsigned_integer(ReplyView reply, std::string_view what);

/// Null is unknown.
std::optional<std::int64_t> optional_integer(ReplyView reply, std::string_view what);
std::optional<std::uint64_t> optional_unsigned(ReplyView reply, std::string_view what);

/// Negative is "never".
std::optional<std::chrono::milliseconds> optional_duration(ReplyView reply, std::string_view what);

/// Milliseconds since the epoch; 0 and negative are "never".
std::optional<std::chrono::system_clock::time_point> optional_time(ReplyView reply,
                                                                   std::string_view what);

/// Checks that `reply` is a list. Null is an empty one.
ReplyView list(ReplyView reply, std::string_view what);

/// An aggregate's elements, one after another.
class Elements {
 public:
  /// Throws ProtocolError if `aggregate` is none. `expected` says what it has to be in that error.
  Elements(ReplyView aggregate, std::string_view what, std::string_view expected)
      : aggregate_{aggregate}, what_{what}, expected_{expected}, at_{aggregate.begin()} {
    if (!aggregate.is_aggregate()) surprise(what, aggregate, expected);
  }

  bool done() const { return at_ == aggregate_.end(); }

  /// The next element. Throws ProtocolError where there is none.
  ReplyView next() {
    if (done()) surprise(what_, aggregate_, expected_);
    const ReplyView element = *at_;
    ++at_;
    return element;
  }

 private:
  ReplyView aggregate_;
  std::string_view what_;
  std::string_view expected_;
  ReplyView::Iterator at_;
};

/// Calls `take(name, value)` for each pair of a RESP3 map, or of the flat array that RESP2 has for
/// it. Names that `take` does not know it skips.
template <typename Take>
void for_each_pair(ReplyView map, std::string_view what, Take take) {
  Elements elements{map, what, "a list of names and values"};
  while (!elements.done()) {
    const std::string_view name = text(elements.next(), what);
    take(name, elements.next());
  }
}

}  // namespace millrace::detail::decode
