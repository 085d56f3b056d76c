#include "stream/producer_config.hpp"

#include <millrace/error.hpp>

#include "core/clock.hpp"

#include <fmt/format.h>

#include <string_view>

namespace millrace::detail {
namespace {

constexpr std::size_t kMostInABatch = 100'000;

[[noreturn]] void refuse_option(std::string_view option, std::string_view value,
                                std::string_view rule) {
  throw InvalidArgument{
      fmt::format("ProducerOptions::{} is {}: it has to be {}", option, value, rule)};
}

void at_least_one(std::string_view option, std::size_t value) {
  if (value < 1) refuse_option(option, fmt::format("{}", value), "at least 1");
}

void time_from(std::string_view option, Milliseconds least, Milliseconds value,
               std::string_view rule) {
  const auto text = fmt::format("{} ms", value.count());
  if (value < least) refuse_option(option, text, rule);
  if (value > kLongestTime) refuse_option(option, text, "at most ten years");
}

}  // namespace

void check(const ProducerOptions& options) {
  if (options.max_batch < 1 || options.max_batch > kMostInABatch) {
    refuse_option("max_batch", fmt::format("{}", options.max_batch),
                  fmt::format("from 1 to {}", kMostInABatch));
  }
  at_least_one("max_batch_bytes", options.max_batch_bytes);
  at_least_one("max_queued", options.max_queued);
  at_least_one("max_queued_bytes", options.max_queued_bytes);
  constexpr Milliseconds kNone{0};
  constexpr Milliseconds kSome{1};
  time_from("linger", kNone, options.linger, "0 ms or more");
  time_from("send_timeout", kNone, options.send_timeout, "0 ms or more");
  time_from("delivery_timeout", kSome, options.delivery_timeout, "more than 0 ms");
  time_from("close_timeout", kNone, options.close_timeout, "0 ms or more");
  time_from("reconnect_min", kSome, options.reconnect_min, "more than 0 ms");
  time_from("reconnect_max", options.reconnect_min, options.reconnect_max,
            "at least reconnect_min");
}

}  // namespace millrace::detail
