#include "report.hpp"

#include <fmt/core.h>

namespace chaos {
namespace {

constexpr std::size_t kMostShown = 20;

using Kind = millrace::test::Violation::Kind;

std::string shown(const millrace::test::Violation& violation) {
  return fmt::format("  {}: {} {} {}\n", to_string(violation.kind), violation.group,
                     violation.id.to_string(), violation.what);
}

}  // namespace

std::vector<std::string> Report::missing_faults() const {
  std::vector<std::string> missing;
  for (const Fault fault : kFaults) {
    const auto found = happened.find(fault);
    const std::size_t count = found == happened.end() ? 0 : found->second;
    if (count >= required(draws)) continue;
    missing.push_back(fmt::format("{} happened {} times, and has to {} times", to_string(fault),
                                  count, required(draws)));
  }
  return missing;
}

bool Report::is_good() const {
  return violations.empty() && problems.empty() && missing_faults().empty();
}

std::string Report::text() const {
  std::string text = fmt::format("seed {}, {:.1f} minutes of faults, {:.0f} s in all\n\n",
                                 options.seed, options.minutes, seconds);
  for (const Fault fault : kFaults) {
    const auto found = happened.find(fault);
    text += fmt::format("  {:<24} {:>9}\n", to_string(fault),
                        found == happened.end() ? 0 : found->second);
  }
  const double failed = calls.calls == 0 ? 0
                                         : 100.0 * static_cast<double>(calls.failed) /
                                               static_cast<double>(calls.calls);
  text += fmt::format("\n  {:<24} {:>9}   {} appends of unknown outcome were made again\n",
                      "entries", entries, unknown);
  text += fmt::format("  {:<24} {:>9}\n", "worker processes", processes);
  text += fmt::format("  {:<24} {:>9}   {:.1f}% failed, {} cut short, {} ended their process\n",
                      "handler calls", calls.calls, failed, calls.cut_short, calls.aborted);
  text += fmt::format("  {:<24} {:>9}   after a retry, a crash or a lost reply\n", "called again",
                      calls.reclaimed);
  text += fmt::format("  {:<24} {:>9}   {} calls began while another for the entry ran\n",
                      "leases lost", calls.leases_lost, calls.overlapping);
  text += fmt::format("  {:<24} {:>9}   successes beyond the first\n", "handled again",
                      calls.handled_again);
  text += fmt::format("  {:<24} {:>9}\n\n", "dead letters", dead_letters);

  std::map<Kind, std::size_t> counts;
  for (const auto& violation : violations) {
    if (++counts[violation.kind] <= kMostShown) text += shown(violation);
  }
  for (const auto& [kind, count] : counts) {
    text += fmt::format("VIOLATED: {} times {}\n", count, to_string(kind));
  }
  for (const auto& problem : problems) text += fmt::format("PROBLEM: {}\n", problem);
  for (const auto& missing : missing_faults()) text += fmt::format("PROBLEM: {}\n", missing);
  if (is_good()) text += "all is as it must be\n";
  return text;
}

}  // namespace chaos
