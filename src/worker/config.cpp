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

}  // namespace

WorkerConfig resolve(const WorkerOptions& options, const EventStream& stream) {
  require(!options.group.empty(), "group", "empty", "must be given");
  require(options.group_start.has_value(), "group_start", "not given",
          "must say where the group starts if it has to be made");
  require(options.prefetch >= 1 && options.prefetch <= kMostPrefetch, "prefetch", options.prefetch,
          fmt::format("must be from 1 to {}", kMostPrefetch));

  const Milliseconds min_idle = options.min_idle.value_or(stream.options().claim_min_idle);
  require_time(min_idle > Milliseconds{0}, "min_idle", min_idle, "must be more than 0");
  const Milliseconds longest_block = std::max(min_idle / 4, Milliseconds{1});
  const Milliseconds block = options.block.value_or(std::min(kUsualBlock, longest_block));
  require_time(block > Milliseconds{0} && block <= longest_block, "block", block,
               fmt::format("must be more than 0 and at most a quarter of min_idle, {} ms",
                           longest_block.count()));
  require_time(options.reap_every >= Milliseconds{0}, "reap_every", options.reap_every,
               "must not be negative");
  require_time(options.reconnect_min > Milliseconds{0}, "reconnect_min", options.reconnect_min,
               "must be more than 0");
  require_time(options.reconnect_max >= options.reconnect_min, "reconnect_max",
               options.reconnect_max, "must not be less than reconnect_min");

  return {.key = stream.key(),
          .group = options.group,
          .consumer = options.consumer.empty() ? unique_consumer_name() : options.consumer,
          .group_start = *options.group_start,
          .prefetch = options.prefetch,
          .block = block,
          .min_idle = min_idle,
          .reap_every = options.reap_every,
          .on_missing_group = options.on_missing_group,
          .reconnect_min = options.reconnect_min,
          .reconnect_max = options.reconnect_max};
}

}  // namespace millrace::detail
