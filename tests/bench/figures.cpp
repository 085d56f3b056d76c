#include "bench/figures.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <ostream>

namespace millrace::bench {
namespace {

std::optional<double> median_of(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The name as it was registered: Google Benchmark adds how it was run.
std::string name_of(const benchmark::BenchmarkReporter::Run& run) {
  return run.run_name.function_name;
}

}  // namespace

bool Figures::ReportContext(const Context& /*context*/) { return true; }

void Figures::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    runs_.push_back(run);
    if (run.error_occurred) {
      errors_.push_back(name_of(run) + ": " + run.error_message);
      continue;
    }
    auto [entry, is_new] = values_.try_emplace(name_of(run));
    if (is_new) names_.push_back(entry->first);
    for (const auto& [counter, value] : run.counters) entry->second[counter].push_back(value.value);
  }
}

const std::vector<double>& Figures::of(const std::string& benchmark,
                                       const std::string& counter) const {
  static const std::vector<double> none;
  const auto entry = values_.find(benchmark);
  if (entry == values_.end()) return none;
  const auto values = entry->second.find(counter);
  return values == entry->second.end() ? none : values->second;
}

std::optional<double> Figures::median(const std::string& benchmark,
                                      const std::string& counter) const {
  return median_of(of(benchmark, counter));
}

std::optional<double> Figures::ratio(const std::string& benchmark, const std::string& other,
                                     const std::string& counter) const {
  const std::vector<double>& ours = of(benchmark, counter);
  const std::vector<double>& theirs = of(other, counter);
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    ratios.push_back(ours[i] / theirs[i]);
  }
  return median_of(std::move(ratios));
}

void Figures::write_json(std::ostream& out) const {
  benchmark::JSONReporter json;
  json.SetOutputStream(&out);
  json.SetErrorStream(&out);
  json.ReportContext(Context{});
  json.ReportRuns(runs_);
  json.Finalize();
}

void Figures::write_table(std::ostream& out) const {
  fmt::print(out, "{:<32} {:>10} {:>10} {:>6} {:>12} {:>8} {:>8} {:>8}\n", "benchmark", "a second",
             "client us", "busy", "allocations", "p50 us", "p99 us", "p99.9 us");
  for (const std::string& name : names_) {
    const auto cell = [&](const char* counter, int digits) {
      const auto value = median(name, counter);
      return value ? fmt::format("{:.{}f}", *value, digits) : std::string{"-"};
    };
    fmt::print(out, "{:<32} {:>10} {:>10} {:>6} {:>12} {:>8} {:>8} {:>8}\n", name, cell("rate", 0),
               cell("client_us", 2), cell("busy", 2), cell("allocations", 2), cell("p50_us", 0),
               cell("p99_us", 0), cell("p999_us", 0));
  }
}

}  // namespace millrace::bench
