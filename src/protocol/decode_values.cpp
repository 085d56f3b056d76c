#include "protocol/decode_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <limits>

namespace millrace::detail::decode {
namespace {

template <typename Number>
std::optional<Number> parse(std::string_view digits) {
  Number value{};
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

}  // namespace

std::string describe(ReplyView reply) {
  switch (reply.kind()) {
    case ReplyKind::kNil:
      return "null";
    case ReplyKind::kInteger:
      return fmt::format("the integer {}", reply.integer());
    case ReplyKind::kString:
      // Its bytes stay out of messages: they could be a payload.
      return fmt::format("a string of {} bytes", reply.text().size());
    case ReplyKind::kStatus:
      return "a status";
    case ReplyKind::kError:
      return "an error";
    case ReplyKind::kArray:
      return fmt::format("an array of {}", reply.size());
    case ReplyKind::kMap:
      return fmt::format("a map of {}", reply.size() / 2);
    case ReplyKind::kDouble:
      return "a double";
    case ReplyKind::kBool:
      return "a boolean";
    case ReplyKind::kPush:
      return "a push message";
    case ReplyKind::kEntries:
      return "a list of entries";
  }
  return "unknown";
}

void surprise(std::string_view what, ReplyView reply, std::string_view expected) {
  throw ProtocolError{fmt::format("{} is {}, not {}", what, describe(reply), expected)};
}

std::string_view text(ReplyView reply, std::string_view what) {
  if (!reply.is_text()) surprise(what, reply, "a string");
  return reply.text();
}

StreamId stream_id(ReplyView reply, std::string_view what) {
  const auto id = reply.is_text() ? StreamId::try_parse(reply.text()) : std::nullopt;
  if (!id) surprise(what, reply, "a stream id");
  return *id;
}

std::int64_t integer(ReplyView reply, std::string_view what) {
  if (reply.is_integer()) return reply.integer();
  const auto value = reply.is_text() ? parse<std::int64_t>(reply.text()) : std::nullopt;
  if (!value) surprise(what, reply, "an integer");
  return *value;
}

std::uint64_t unsigned_integer(ReplyView reply, std::string_view what) {
  if (reply.is_integer() && reply.integer() >= 0) {
    return static_cast<std::uint64_t>(reply.integer());
  }
  const auto value = reply.is_text() ? parse<std::uint64_t>(reply.text()) : std::nullopt;
  if (!value) surprise(what, reply, "a number of 0 or more");
  return *value;
}

std::optional<std::int64_t> optional_integer(ReplyView reply, std::string_view what) {
  if (reply.is_nil()) return std::nullopt;
  return integer(reply, what);
}

std::optional<std::uint64_t> optional_unsigned(ReplyView reply, std::string_view what) {
  if (reply.is_nil()) return std::nullopt;
  return unsigned_integer(reply, what);
}

std::optional<std::chrono::milliseconds> optional_duration(ReplyView reply, std::string_view what) {
  const auto value = optional_integer(reply, what);
  if (!value || *value < 0) return std::nullopt;
  return std::chrono::milliseconds{*value};
}

std::optional<std::chrono::system_clock::time_point> optional_time(ReplyView reply,
                                                                   std::string_view what) {
  using TimePoint = std::chrono::system_clock::time_point;
  constexpr auto kLast =
      std::chrono::duration_cast<std::chrono::milliseconds>(TimePoint::max().time_since_epoch());
  const auto since_epoch = optional_duration(reply, what);
  if (!since_epoch || since_epoch->count() == 0) return std::nullopt;
  if (*since_epoch > kLast) surprise(what, reply, "a time");
  return TimePoint{std::chrono::duration_cast<TimePoint::duration>(*since_epoch)};
}

ReplyView list(ReplyView reply, std::string_view what) {
  if (!reply.is_nil() && !reply.is_aggregate()) surprise(what, reply, "a list");
  return reply;
}

}  // namespace millrace::detail::decode
