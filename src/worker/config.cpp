#include "worker/config.hpp"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <string_view>

namespace millrace::detail {
namespace {

constexpr std::size_t kMostPrefetch = 10'000;
constexpr std::size_t kMostConcurrency = 1'000;
constexpr Milliseconds kUsualBlock{2'000};

/// Longer than anybody waits, and not so long that reckoning with it overflows.
constexpr std::chrono::hours kLongest{24 * 3'653};

void require(bool holds, std::string_view option, const auto& value, std::string_view rule) {
  if (holds) return;
  throw InvalidArgument{fmt::format("WorkerOptions::{} is {}: it {}", option, value, rule)};
}

void require_time(bool holds, std::string_view option, Milliseconds value, std::string_view rule) {
  const auto text = fmt::format("{} ms", value.count());
  require(holds, option, text, rule);
  require(value <= kLongest, option, text, "must be at most ten years");
}

/// `<host>-<pid>-<8 random hex digits>`: unique among the workers of a group.
std::string unique_consumer_name() {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("{}-{}-{:08x}", host.data(), getpid(), std::random_device{}());
}

/// True if a cluster takes the slot of `key` from a part of it. (Redis: cluster specification,
/// "Hash tags": what is between the first `{` and the first `}` after it, if it is not empty.)
bool has_hash_tag(std::string_view key) {
  const auto open = key.find('{');
  if (open == std::string_view::npos) return false;
  const auto close = key.find('}', open);
  return close != std::string_view::npos && close > open + 1;
}

WorkerConfig::Letters resolve_letters(const DeadLetterOptions& options, const std::string& key) {
  require(!options.max_length || *options.max_length > 0, "dead_letter.max_length",
          options.max_length.value_or(0), "must be more than 0");
  require(options.stream.empty() || !options.sink, "dead_letter.stream", options.stream,
          "must not be given beside a sink");
  require(options.stream != key, "dead_letter.stream", options.stream,
          "must not be the stream itself");
  const bool needs_name = options.enabled && options.stream.empty() && !options.sink;
  require(!needs_name || has_hash_tag(key) || key.find('}') == std::string::npos,
          "dead_letter.stream", "empty", "must be given for a key with a '}' but no hash tag");
  return {.enabled = options.enabled,
          .stream = options.stream.empty() ? sibling_key(key, "dlq") : options.stream,
          .max_length = options.max_length,
          .sink = options.sink};
}

}  // namespace

std::string sibling_key(std::string_view key, std::string_view suffix) {
  return has_hash_tag(key) ? fmt::format("{}:{}", key, suffix)
                           : fmt::format("{{{}}}:{}", key, suffix);
}

std::string random_word() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

WorkerConfig resolve(const WorkerOptions& options, const EventStream& stream) {
  require(!options.group.empty(), "group", "empty", "must be given");
  require(options.group_start.has_value(), "group_start", "not given",
          "must say where the group starts if it has to be made");
  require(options.concurrency >= 1 && options.concurrency <= kMostConcurrency, "concurrency",
          options.concurrency, fmt::format("must be from 1 to {}", kMostConcurrency));
  require(options.prefetch_bytes >= 1, "prefetch_bytes", options.prefetch_bytes,
          "must be more than 0");
  require(options.max_deliveries >= 2, "max_deliveries", options.max_deliveries,
          "must be at least 2");
  require(options.prefetch >= 1 && options.prefetch <= kMostPrefetch, "prefetch", options.prefetch,
          fmt::format("must be from 1 to {}", kMostPrefetch));

  const Milliseconds min_idle = options.min_idle.value_or(stream.options().claim_min_idle);
  require_time(min_idle > Milliseconds{0}, "min_idle", min_idle, "must be more than 0");
  const Milliseconds longest_block = std::max(min_idle / 4, Milliseconds{1});
  const Milliseconds block = options.block.value_or(std::min(kUsualBlock, longest_block));
  require_time(block > Milliseconds{0} && block <= longest_block, "block", block,
               fmt::format("must be more than 0 and at most a quarter of min_idle, {} ms",
                           longest_block.count()));
  const Milliseconds renew =
      options.lease_renew_every.value_or(std::max(min_idle / 3, Milliseconds{1}));
  require_time(renew > Milliseconds{0} && renew <= std::max(min_idle / 2, Milliseconds{1}),
               "lease_renew_every", renew,
               fmt::format("must be more than 0 and at most half of min_idle, {} ms",
                           (min_idle / 2).count()));
  require_time(options.retry_backoff > Milliseconds{0}, "retry_backoff", options.retry_backoff,
               "must be more than 0");
  if (options.max_handler_time) {
    require_time(*options.max_handler_time > Milliseconds{0}, "max_handler_time",
                 *options.max_handler_time, "must be more than 0");
  }
  require_time(options.reap_every >= Milliseconds{0}, "reap_every", options.reap_every,
               "must not be negative");
  require_time(options.reconnect_min > Milliseconds{0}, "reconnect_min", options.reconnect_min,
               "must be more than 0");
  require_time(options.reconnect_max >= options.reconnect_min, "reconnect_max",
               options.reconnect_max, "must not be less than reconnect_min");

  return {.key = stream.key(),
          .group = options.group,
          .consumer = options.consumer.empty() ? unique_consumer_name() : options.consumer,
          .record = sibling_key(stream.key(), fmt::format("millrace:{}", options.group)),
          .token = options.consumer.empty() ? std::string{} : random_word(),
          .group_start = *options.group_start,
          .concurrency = options.concurrency,
          .prefetch = options.prefetch,
          .prefetch_bytes = options.prefetch_bytes,
          .block = block,
          .min_idle = min_idle,
          .lease_renew_every = renew,
          .reap_every = options.reap_every,
          .max_deliveries = options.max_deliveries,
          .retry_backoff = options.retry_backoff,
          .letters = resolve_letters(options.dead_letter, stream.key()),
          .on_missing_group = options.on_missing_group,
          .reconnect_min = options.reconnect_min,
          .reconnect_max = options.reconnect_max,
          .lane = options.key,
          .max_handler_time = options.max_handler_time,
          .metrics = options.metrics};
}

}  // namespace millrace::detail
