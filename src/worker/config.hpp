#pragma once

#include <millrace/consumer_worker.hpp>

#include "core/clock.hpp"

#include <cstddef>
#include <string>

namespace millrace::detail {

/// WorkerOptions, checked, with each default resolved.
struct WorkerConfig {
  std::string key{};
  std::string group{};
  std::string consumer{};
  GroupStart group_start = GroupStart::beginning();
  std::size_t prefetch = 16;
  Milliseconds block{};
  Milliseconds min_idle{};
  Milliseconds reap_every{};
  OnMissingGroup on_missing_group = OnMissingGroup::kRecreate;
  Milliseconds reconnect_min{};
  Milliseconds reconnect_max{};
};

/// Throws InvalidArgument, which names the option, the value and the rule.
WorkerConfig resolve(const WorkerOptions& options, const EventStream& stream);

}  // namespace millrace::detail
