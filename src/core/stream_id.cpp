#include <millrace/error.hpp>
#include <millrace/format.hpp>
#include <millrace/stream_id.hpp>

#include "core/printable.hpp"

#include <charconv>
#include <ostream>

namespace millrace {
namespace {

/// Reads one unsigned number; nullptr unless it starts with a digit and fits.
const char* read_number(const char* first, const char* last, std::uint64_t& value) noexcept {
  const auto [end, error] = std::from_chars(first, last, value);
  return error == std::errc{} ? end : nullptr;
}

}  // namespace

std::optional<StreamId> StreamId::try_parse(std::string_view text) noexcept {
  const char* const last = text.data() + text.size();
  StreamId id;
  const char* at = read_number(text.data(), last, id.ms);
  if (at == nullptr) return std::nullopt;
  if (at == last) return id;
  if (*at != '-') return std::nullopt;
  at = read_number(at + 1, last, id.seq);
  if (at != last) return std::nullopt;
  return id;
}

StreamId StreamId::parse(std::string_view text) {
  if (const auto id = try_parse(text)) return *id;
  throw InvalidArgument{fmt::format(
      "'{}' is not a stream id: it has to be 'ms-seq' or 'ms', two unsigned 64-bit numbers",
      detail::printable(text))};
}

std::string StreamId::to_string() const { return fmt::format("{}", *this); }

StreamId StreamId::next() const {
  if (*this == max()) throw InvalidArgument{"there is no stream id after the last possible one"};
  return seq == max().seq ? StreamId{ms + 1, 0} : StreamId{ms, seq + 1};
}

StreamId StreamId::prev() const {
  if (*this == min()) throw InvalidArgument{"there is no stream id before 0-0"};
  return seq == 0 ? StreamId{ms - 1, max().seq} : StreamId{ms, seq - 1};
}

std::ostream& operator<<(std::ostream& out, const StreamId& id) { return out << id.to_string(); }

}  // namespace millrace
