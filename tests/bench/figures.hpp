#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace millrace::bench {

/// What all rounds measured: of each benchmark its counters, one set a round.
class Figures final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;

  /// The counter of this benchmark, one value a round; empty where it did not run.
  const std::vector<double>& of(const std::string& benchmark, const std::string& counter) const;

  /// Its median over the rounds.
  std::optional<double> median(const std::string& benchmark, const std::string& counter) const;

  /// The median over the rounds of what one had beside what the other had in the same round: what
  /// slows a whole round down counts for both.
  std::optional<double> ratio(const std::string& benchmark, const std::string& other,
                              const std::string& counter) const;

  /// Everything, as Google Benchmark writes it.
  void write_json(std::ostream& out) const;

  /// A line a benchmark, with its medians.
  void write_table(std::ostream& out) const;

  const std::vector<std::string>& errors() const noexcept { return errors_; }

 private:
  std::vector<Run> runs_;
  std::vector<std::string> names_;  ///< In the order in which they ran first.
  std::map<std::string, std::map<std::string, std::vector<double>>> values_;
  std::vector<std::string> errors_;
};

}  // namespace millrace::bench
