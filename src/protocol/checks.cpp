#include "protocol/checks.hpp"

#include <millrace/error.hpp>
#include <millrace/format.hpp>

#include "protocol/request.hpp"

#include <cstdint>
#include <limits>
#include <utility>

namespace millrace::detail::checks {
namespace {

/// The server reads counts and times as signed 64-bit numbers.
constexpr std::uint64_t kLargestNumber = std::numeric_limits<std::int64_t>::max();

/// XAUTOCLAIM multiplies its COUNT by 16 bytes, and refuses what would overflow.
constexpr std::uint64_t kLargestAutoclaimCount = kLargestNumber / 16;

template <typename Value>
[[noreturn]] void refuse(std::string_view option, const Value& value, std::string_view rule) {
  throw InvalidArgument{fmt::format("{} is {}: it has to be {}", option, value, rule)};
}

void count_up_to(std::string_view option, std::size_t count, std::uint64_t largest) {
  if (count < 1 || count > largest) {
    refuse(option, count, fmt::format("from 1 to {}", largest));
  }
}

[[noreturn]] void refuse_time(std::string_view option, Milliseconds time, std::string_view rule) {
  refuse(option, fmt::format("{} ms", time.count()), rule);
}

void not_negative(std::string_view option, Milliseconds time) {
  if (time.count() < 0) refuse_time(option, time, "0 ms or more");
}

void time(std::string_view option, Milliseconds time) {
  not_negative(option, time);
  if (time > kLongestTime) refuse_time(option, time, "at most ten years");
}

void argument(std::string_view what, std::size_t bytes) {
  if (bytes > RequestBuffer::kMaxArgumentBytes) {
    throw InvalidArgument{fmt::format("the {} of {} bytes is over the limit of 512 MiB ({} bytes)",
                                      what, bytes, RequestBuffer::kMaxArgumentBytes)};
  }
}

/// All at once: no size can have a bit that is above those of their union.
bool are_surely_short(std::span<const Field> first, const Fields& rest) {
  std::size_t bits = 0;
  const auto add = [&bits](const Field& field) {
    bits |= field.first.size() | field.second.size();
  };
  for (const Field& field : first) add(field);
  rest.for_each(add);
  return bits < RequestBuffer::kMaxArgumentBytes;
}

}  // namespace

void name(std::string_view what, std::string_view name) {
  if (name.empty()) throw InvalidArgument{fmt::format("the {} is empty: it needs a name", what)};
  argument(what, name.size());
}

void words(std::string_view command, std::size_t words) {
  if (words > RequestBuffer::kMaxArguments) {
    throw InvalidArgument{
        fmt::format("{} with {} arguments is over the limit of {} arguments a command", command,
                    words, RequestBuffer::kMaxArguments)};
  }
}

void count(std::string_view option, std::size_t count) {
  count_up_to(option, count, kLargestNumber);
}

void autoclaim_count(std::size_t count) {
  count_up_to("AutoclaimOptions::count", count, kLargestAutoclaimCount);
}

void min_idle(std::string_view option, Milliseconds min_idle) { time(option, min_idle); }

void block(Milliseconds block) { time("block", block); }

void read(const ReadOptions& options) {
  count("ReadOptions::count", options.count);
  block(options.block);
}

void claim(const ClaimOptions& options, std::chrono::system_clock::time_point now) {
  const auto since_epoch = std::chrono::duration_cast<Milliseconds>(now.time_since_epoch());
  if (options.idle) {
    not_negative("ClaimOptions::idle", *options.idle);
    // The server takes an idle time that began before 1970 as 0, the opposite of what was meant.
    if (*options.idle > since_epoch) {
      refuse_time("ClaimOptions::idle", *options.idle, "at most the time since 1970");
    }
  }
  if (options.time) {
    if (options.idle) {
      throw InvalidArgument{
          "ClaimOptions::time and ClaimOptions::idle are both given: they set "
          "the same thing, so only one of them can be"};
    }
    not_negative("ClaimOptions::time",
                 std::chrono::duration_cast<Milliseconds>(options.time->time_since_epoch()));
  }
  if (options.delivery_count && *options.delivery_count > kLargestNumber) {
    refuse("ClaimOptions::delivery_count", *options.delivery_count,
           fmt::format("at most {}", kLargestNumber));
  }
}

void autoclaim(const AutoclaimOptions& options) {
  if (options.min_idle) min_idle("AutoclaimOptions::min_idle", *options.min_idle);
  autoclaim_count(options.count);
  if (options.max_pages < 1) refuse("AutoclaimOptions::max_pages", options.max_pages, "1 or more");
}

void pending(const PendingQuery& query) {
  count("PendingQuery::count", query.count);
  min_idle("PendingQuery::min_idle", query.min_idle);
  if (query.consumer) name("PendingQuery::consumer", *query.consumer);
}

void trim(const Trim& trim) {
  const auto* max_len = std::get_if<Trim::MaxLen>(&trim.threshold());
  if (max_len != nullptr && max_len->count > kLargestNumber) {
    refuse("Trim::max_len", max_len->count, fmt::format("at most {}", kLargestNumber));
  }
  if (trim.limit() && *trim.limit() > kLargestNumber) {
    refuse("Trim::limit", *trim.limit(), fmt::format("at most {}", kLargestNumber));
  }
}

void stream(const StreamOptions& options) {
  if (options.retention) trim(*options.retention);
  constexpr std::string_view kClaimMinIdle = "StreamOptions::claim_min_idle";
  if (options.claim_min_idle.count() <= 0) {
    refuse_time(kClaimMinIdle, options.claim_min_idle, "more than 0 ms");
  }
  time(kClaimMinIdle, options.claim_min_idle);
}

void entry(const commands::AddTerms& terms, std::span<const Field> first, const Fields& rest) {
  if (rest.empty() && first.empty()) {
    throw InvalidArgument{"an entry without fields: it has to have at least one"};
  }
  if (terms.id.kind() == AddId::Kind::kExact && terms.id.id() == StreamId::min()) {
    throw InvalidArgument{"AddOptions::id is 0-0: it has to be greater than that"};
  }
  checks::words("XADD", commands::xadd_words(terms, first.size() + rest.size()));
  if (are_surely_short(first, rest)) return;
  const auto check = [](const Field& field) {
    argument("name of a field", field.first.size());
    argument("value of a field", field.second.size());
  };
  for (const Field& field : first) check(field);
  rest.for_each(check);
}

std::optional<Error> refusal(const commands::AddTerms& terms, std::span<const Field> first,
                             const Fields& rest) {
  try {
    entry(terms, first, rest);
    return std::nullopt;
  } catch (const InvalidArgument& error) {
    return error;
  }
}

}  // namespace millrace::detail::checks
