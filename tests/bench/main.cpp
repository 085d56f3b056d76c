// ratios [--rounds=N] [--json=FILE] [GOOGLE BENCHMARK'S OPTIONS...]: the workloads by millrace and
// by those that it is measured against, interleaved: each round runs all of them once. Ends with 1
// where a target is missed, and with 2 where a benchmark could not run.

#include "bench/bench.hpp"
#include "bench/targets.hpp"

#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

namespace {

using namespace millrace::bench;

struct Options {
  int rounds = 5;
  std::string json{};
};

/// Takes what is ours out of the arguments; Google Benchmark takes the rest.
Options take_options(int& count, char** arguments) {
  Options options;
  int kept = 1;
  for (int i = 1; i < count; ++i) {
    std::string_view argument{arguments[i]};
    const auto is = [&](std::string_view name) {
      if (!argument.starts_with(name)) return false;
      argument.remove_prefix(name.size());
      return true;
    };
    if (is("--rounds=")) {
      std::from_chars(argument.data(), argument.data() + argument.size(), options.rounds);
    } else if (is("--json=")) {
      options.json = argument;
    } else {
      arguments[kept++] = arguments[i];
    }
  }
  count = kept;
  return options;
}

int run(const Options& options) {
  const unsigned cpus = std::thread::hardware_concurrency();
  std::cout << "server: " << the_bench().server_name() << ", "
            << (cpus > 1 ? "pinned to processor 0; clients: the other " + std::to_string(cpus - 1)
                         : "which shares the only processor with the clients")
            << "; " << options.rounds << " rounds, medians\n\n";
  Figures figures;
  for (int round = 0; round < options.rounds; ++round) {
    benchmark::RunSpecifiedBenchmarks(&figures);
  }
  figures.write_table(std::cout);
  std::cout << '\n';
  const int missed = judge(figures, std::cout);
  if (!options.json.empty()) {
    std::ofstream file{options.json};
    figures.write_json(file);
  }
  for (const std::string& error : figures.errors()) std::cerr << "failed: " << error << '\n';
  std::cout << missed << " missed\n";
  if (!figures.errors().empty()) return 2;
  return missed == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Options options = take_options(count, arguments);
    benchmark::Initialize(&count, arguments);
    if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 64;
    add_append_benchmarks();
    add_reading_benchmarks();
    add_latency_benchmarks();
    return run(options);
  } catch (const std::exception& failure) {
    std::cerr << "failed: " << failure.what() << '\n';
    return 2;
  }
}
