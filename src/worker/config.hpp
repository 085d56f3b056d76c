#pragma once

#include <millrace/consumer_worker.hpp>

#include "core/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::detail {

/// WorkerOptions, checked, with each default resolved.
struct WorkerConfig {
  std::string key{};
  std::string group{};
  std::string consumer{};
  std::string record{};  ///< The key of the group's record.
  /// Tells this worker from another one of the same name. Empty: nobody else can have it.
  std::string token{};
  GroupStart group_start = GroupStart::beginning();
  std::size_t concurrency = 1;
  std::size_t prefetch = 16;
  std::size_t prefetch_bytes = std::size_t{64} << 20;
  Milliseconds block{};
  Milliseconds min_idle{};
  Milliseconds lease_renew_every{};
  Milliseconds reap_every{};
  std::uint64_t max_deliveries = 5;
  Milliseconds retry_backoff{};

  struct Letters {
    bool enabled = true;
    std::string stream{};
    std::optional<std::uint64_t> max_length{};
    std::function<void(const DeadLetter&)> sink{};
    bool to_stream() const noexcept { return enabled && !sink; }
  } letters{};

  OnMissingGroup on_missing_group = OnMissingGroup::kRecreate;
  Milliseconds reconnect_min{};
  Milliseconds reconnect_max{};
  std::function<std::string(const Entry&)> lane{};
  std::optional<Milliseconds> max_handler_time{};
  bool metrics = true;
};

/// Throws InvalidArgument, which names the option, the value and the rule.
WorkerConfig resolve(const WorkerOptions& options, const EventStream& stream);

/// The key of something that belongs to the stream `key`, in the same slot of a cluster.
std::string sibling_key(std::string_view key, std::string_view suffix);

/// 16 random hex digits.
std::string random_word();

}  // namespace millrace::detail
