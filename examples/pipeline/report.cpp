#include "report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string_view>

namespace pipeline {

Tally tally(const Appended& appended, std::span<const Handled> handled) {
  Tally result;
  std::set<millrace::StreamId> seen, reclaimed;
  for (const auto& entry : handled) {
    const auto found = appended.find(entry.id);
    if (found == appended.end() || found->second != entry.checksum) {
      ++result.damaged;
      continue;
    }
    if (!seen.insert(entry.id).second) ++result.duplicates;
    if (entry.reclaimed) reclaimed.insert(entry.id);
  }
  result.processed = seen.size();
  result.reclaimed = reclaimed.size();
  result.lost = appended.size() - seen.size();
  return result;
}

bool Report::is_good() const {
  const bool groups_are_good = std::ranges::all_of(
      groups, [](const Group& group) { return group.tally.lost == 0 && group.tally.damaged == 0; });
  return groups_are_good && entries == records && replayed == entries && trimmed == entries &&
         held > 0;
}

std::string Report::table() const {
  std::string text;
  const auto cell = [&text](const auto& value) { text += fmt::format("{:>12}", value); };
  const auto row = [&](std::string_view what, std::size_t number) {
    text += fmt::format("\n{:<28}", what);
    cell(number);
  };
  const auto group_row = [&](std::string_view what, auto value_of) {
    text += fmt::format("\n{:<28}", what);
    for (const auto& group : groups) cell(value_of(group));
  };
  const auto a_second = [](std::size_t count, double seconds) {
    return static_cast<std::size_t>(static_cast<double>(count) / std::max(seconds, 0.001));
  };

  row("records in", records);
  row("entries", entries);
  row("  appended a second", a_second(entries, append_seconds));
  text += '\n';
  group_row("group", [](const Group& group) { return group.name; });
  group_row("processed", [](const Group& group) { return group.tally.processed; });
  group_row("  a second", [&](const Group& g) { return a_second(g.tally.processed, g.seconds); });
  group_row("reclaimed", [](const Group& group) { return group.tally.reclaimed; });
  group_row("duplicates", [](const Group& group) { return group.tally.duplicates; });
  group_row("damaged", [](const Group& group) { return group.tally.damaged; });
  group_row("lost", [](const Group& group) { return group.tally.lost; });
  text += '\n';
  row(killed.empty() ? "held by nobody killed" : "held by the killed " + killed, held);
  row("replayed, byte-equal", replayed);
  row("trimmed", trimmed);
  return text.substr(1) + '\n';
}

}  // namespace pipeline
