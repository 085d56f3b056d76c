#include <millrace/prometheus.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace millrace {
namespace {

using Seconds = std::chrono::duration<double>;
using Value = std::optional<double>;

/// The bytes of the UTF-8 character at the start of `text`; 0 if there is none. (RFC 3629: no
/// surrogates, nothing beyond U+10FFFF, no longer than need be.)
std::size_t utf8_size(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool is_too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool is_surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool is_beyond = lead == 0xf4 && byte(1) >= 0x90;
  return is_too_long || is_surrogate || is_beyond ? 0 : size;
}

/// `text` as the value of a label, whatever bytes it has.
std::string label_value(std::string_view text) {
  fmt::memory_buffer shown;
  const auto out = std::back_inserter(shown);
  while (!text.empty()) {
    const std::size_t size = utf8_size(text);
    const auto byte = static_cast<unsigned char>(text.front());
    if (byte == '\n') {
      fmt::format_to(out, "\\n");
    } else if (byte == '"' || byte == '\\') {
      fmt::format_to(out, "\\{}", text.front());
    } else if (size == 0 || byte < 0x20 || byte == 0x7f) {
      fmt::format_to(out, "\\\\x{:02x}", byte);  // a backslash is escaped as any other
    } else {
      shown.append(text.data(), text.data() + size);
    }
    text.remove_prefix(std::max(size, std::size_t{1}));
  }
  return fmt::to_string(shown);
}

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

std::string labels(Labels pairs) {
  fmt::memory_buffer text;
  for (const auto& [name, value] : pairs) {
    fmt::format_to(std::back_inserter(text), "{}{}=\"{}\"", text.size() == 0 ? "" : ",", name,
                   label_value(value));
  }
  return fmt::to_string(text);
}

/// What the samples of a metric are taken from, by their labels.
template <typename Of>
using Sources = std::map<std::string, const Of*>;

template <typename Of>
struct Metric {
  std::string_view name;
  std::string_view help;
  Value (*value)(const Of&);
};

/// The text as it grows: each metric with its samples in one piece.
class Page {
 public:
  template <typename Of>
  void write(std::string_view type, const Metric<Of>& metric, const Sources<Of>& sources) {
    bool has_head = false;
    for (const auto& [labels, source] : sources) {
      const Value value = metric.value(*source);
      if (!value) continue;
      if (!std::exchange(has_head, true)) head(metric.name, type, metric.help);
      sample(metric.name, labels, *value);
    }
  }

  void write(std::string_view name, std::string_view help, Histogram WorkerStats::*histogram,
             const Sources<WorkerStats>& sources) {
    bool has_head = false;
    for (const auto& [labels, source] : sources) {
      const Histogram& one = source->*histogram;
      if (one.bounds.empty() || one.counts.size() != one.bounds.size() + 1) continue;
      if (!std::exchange(has_head, true)) head(name, "histogram", help);
      buckets(name, labels, one);
    }
  }

  std::string text() const { return fmt::to_string(text_); }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_.push_back('\n');
  }

  void head(std::string_view name, std::string_view type, std::string_view help) {
    line("# HELP {} {}", name, help);
    line("# TYPE {} {}", name, type);
  }

  void sample(std::string_view name, std::string_view labels, double value) {
    line("{}{{{}}} {}", name, labels, value);
  }

  void buckets(std::string_view name, std::string_view labels, const Histogram& histogram) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < histogram.bounds.size(); ++i) {
      below += histogram.counts[i];
      line("{}_bucket{{{},le=\"{}\"}} {}", name, labels, histogram.bounds[i].count(), below);
    }
    below += histogram.counts.back();
    line("{}_bucket{{{},le=\"+Inf\"}} {}", name, labels, below);
    line("{}_sum{{{}}} {}", name, labels, histogram.sum.count());
    line("{}_count{{{}}} {}", name, labels, below);
  }

  fmt::memory_buffer text_;
};

template <auto Member, typename Of>
Value number(const Of& of) {
  return static_cast<double>(of.*Member);
}

template <auto Member, typename Of>
Value number_if_known(const Of& of) {
  const auto& value = of.*Member;
  return value ? Value{static_cast<double>(*value)} : std::nullopt;
}

template <auto Member, typename Of>
Value seconds_if_known(const Of& of) {
  const auto& value = of.*Member;
  return value ? Value{Seconds{*value}.count()} : std::nullopt;
}

constexpr std::array<Metric<WorkerStats>, 10> kWorkerCounters{{
    {"millrace_worker_delivered_total", "Entries that came, those taken over included.",
     number<&WorkerStats::delivered>},
    {"millrace_worker_succeeded_total", "Entries whose handler said ack.",
     number<&WorkerStats::succeeded>},
    {"millrace_worker_failed_total", "Entries whose handler failed.", number<&WorkerStats::failed>},
    {"millrace_worker_retried_total", "Failed entries that are to be tried again.",
     number<&WorkerStats::retried>},
    {"millrace_worker_dead_lettered_total", "Dead letters written.",
     number<&WorkerStats::dead_lettered>},
    {"millrace_worker_reclaimed_total", "Pending entries taken over.",
     number<&WorkerStats::reclaimed>},
    {"millrace_worker_released_total", "Entries given back at the stop.",
     number<&WorkerStats::released>},
    {"millrace_worker_leases_lost_total", "Held entries that turned out to be a peer's.",
     number<&WorkerStats::leases_lost>},
    {"millrace_worker_trimmed_total", "Pending entries whose payload was gone.",
     number<&WorkerStats::trimmed>},
    {"millrace_worker_reconnects_total", "Connections made after the first.",
     number<&WorkerStats::reconnects>},
}};

constexpr std::array<Metric<WorkerStats>, 4> kWorkerGauges{{
    {"millrace_worker_ready", "1 if the worker reads and the server answers.",
     [](const WorkerStats& stats) { return Value{stats.state == WorkerState::kRunning ? 1 : 0}; }},
    {"millrace_worker_in_flight", "Entries held: queued, running, or not yet acknowledged.",
     number<&WorkerStats::in_flight>},
    {"millrace_worker_queued_bytes", "Bytes of the payloads that are held.",
     number<&WorkerStats::queued_bytes>},
    {"millrace_worker_last_completion_timestamp_seconds",
     "When an entry was last handled, well or not.",
     [](const WorkerStats& stats) {
       if (!stats.last_completion) return Value{};
       // Nanoseconds since 1970 are more than a double can tell apart.
       const auto at = stats.last_completion->time_since_epoch();
       return Value{Seconds{std::chrono::floor<std::chrono::milliseconds>(at)}.count()};
     }},
}};

constexpr std::array<Metric<GroupHealth>, 7> kGroupGauges{{
    {"millrace_group_exists", "1 if there is such a group.", number<&GroupHealth::exists>},
    {"millrace_group_stream_length", "Entries in the stream.", number<&GroupHealth::length>},
    {"millrace_group_lag", "Entries not yet delivered, as the server reckons.",
     number_if_known<&GroupHealth::lag>},
    {"millrace_group_unread", "Entries in the stream that were delivered to nobody yet.",
     number_if_known<&GroupHealth::unread>},
    {"millrace_group_backlog", "Entries unread or pending.",
     [](const GroupHealth& health) {
       const auto backlog = health.backlog();
       return backlog ? Value{static_cast<double>(*backlog)} : std::nullopt;
     }},
    {"millrace_group_pending", "Entries delivered and not yet acknowledged.",
     number<&GroupHealth::pending>},
    {"millrace_group_oldest_pending_age_seconds",
     "How long ago the oldest pending entry was appended.",
     seconds_if_known<&GroupHealth::oldest_pending_age>},
}};

constexpr std::array<Metric<ConsumerInfo>, 3> kConsumerGauges{{
    {"millrace_consumer_pending", "Entries delivered to the consumer and not yet acknowledged.",
     number<&ConsumerInfo::pending>},
    {"millrace_consumer_idle_seconds", "Since it last tried to read or claim.",
     [](const ConsumerInfo& info) { return Value{Seconds{info.idle}.count()}; }},
    {"millrace_consumer_inactive_seconds", "Since it last got anything.",
     seconds_if_known<&ConsumerInfo::inactive>},
}};

void write_workers(Page& page, const std::vector<WorkerStats>& workers) {
  Sources<WorkerStats> sources;
  for (const WorkerStats& stats : workers) {
    sources[labels(
        {{"stream", stats.stream}, {"group", stats.group}, {"consumer", stats.consumer}})] = &stats;
  }
  for (const auto& counter : kWorkerCounters) page.write("counter", counter, sources);
  for (const auto& gauge : kWorkerGauges) page.write("gauge", gauge, sources);
  page.write("millrace_worker_handler_seconds", "How long handler calls took.",
             &WorkerStats::handler_time, sources);
  page.write("millrace_worker_age_seconds", "From an entry's appending to its handler's ack.",
             &WorkerStats::age, sources);
}

void write_groups(Page& page, const std::vector<GroupHealth>& groups) {
  Sources<GroupHealth> sources;
  Sources<ConsumerInfo> consumers;
  for (const GroupHealth& health : groups) {
    sources[labels({{"stream", health.stream}, {"group", health.group}})] = &health;
    for (const ConsumerInfo& consumer : health.consumers) {
      consumers[labels(
          {{"stream", health.stream}, {"group", health.group}, {"consumer", consumer.name}})] =
          &consumer;
    }
  }
  for (const auto& gauge : kGroupGauges) page.write("gauge", gauge, sources);
  for (const auto& gauge : kConsumerGauges) page.write("gauge", gauge, consumers);
}

}  // namespace

std::string prometheus_text(const std::vector<WorkerStats>& workers,
                            const std::vector<GroupHealth>& groups) {
  Page page;
  write_workers(page, workers);
  write_groups(page, groups);
  return page.text();
}

}  // namespace millrace
