#pragma once

/// Formatters for fmt. The only public header that includes fmt.

#include <millrace/observer.hpp>
#include <millrace/stream_id.hpp>

#include <fmt/format.h>

#include <string_view>

/// `{}` gives `ms-seq`.
template <>
struct fmt::formatter<millrace::StreamId> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }

  template <typename Context>
  auto format(const millrace::StreamId& id, Context& context) const {
    return fmt::format_to(context.out(), "{}-{}", id.ms, id.seq);
  }
};

/// `{}` gives `info`, `warning` or `error`; takes what a string does: `{:>7}`.
template <>
struct fmt::formatter<millrace::Observer::LogLevel> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(millrace::Observer::LogLevel level, Context& context) const {
    return fmt::formatter<std::string_view>::format(name(level), context);
  }

 private:
  static constexpr std::string_view name(millrace::Observer::LogLevel level) {
    using Level = millrace::Observer::LogLevel;
    if (level == Level::kInfo) return "info";
    return level == Level::kWarning ? "warning" : "error";
  }
};

/// `{}` gives `running` and so on; takes what a string does.
template <>
struct fmt::formatter<millrace::WorkerState> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(millrace::WorkerState state, Context& context) const {
    return fmt::formatter<std::string_view>::format(name(state), context);
  }

 private:
  static constexpr std::string_view name(millrace::WorkerState state) {
    switch (state) {
      case millrace::WorkerState::kCreated:
        return "created";
      case millrace::WorkerState::kStarting:
        return "starting";
      case millrace::WorkerState::kRunning:
        return "running";
      case millrace::WorkerState::kPaused:
        return "paused";
      case millrace::WorkerState::kDegraded:
        return "degraded";
      case millrace::WorkerState::kDraining:
        return "draining";
      case millrace::WorkerState::kStopped:
        return "stopped";
      case millrace::WorkerState::kFailed:
        break;
    }
    return "failed";
  }
};
