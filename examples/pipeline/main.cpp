// A pipeline of real records: appended to a stream, processed by two groups of worker processes,
// one of which is killed in the middle; then replayed, counted and trimmed. See --help, and run.cpp
// for what happens in which order.

#include <millrace/event_stream.hpp>

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <system_error>

#include "options.hpp"
#include "records.hpp"
#include "run.hpp"
#include "worker.hpp"

namespace {

std::string read_all(const std::string& input) {
  std::ifstream file;
  if (input != "-") {
    file.open(input, std::ios::binary);
    if (!file) throw std::system_error{errno, std::generic_category(), "cannot read " + input};
  }
  std::istream& in = input == "-" ? std::cin : file;
  std::string text{std::istreambuf_iterator<char>{in}, {}};
  if (in.bad()) throw std::runtime_error{"cannot read " + input};
  return text;
}

int run_pipeline(const pipeline::Options& options) {
  const auto records = pipeline::parse_records(read_all(options.input), options.format);
  if (records.empty()) throw pipeline::BadInput{"there are no records in the input"};

  const auto report = pipeline::run(options, records);
  fmt::print("{}", report.table());

  if (options.keep || !report.is_good()) {
    fmt::print("\nThe stream {} is still there.\n", options.stream);
  } else {
    const millrace::ConnectionPool pool{millrace::ConnectionOptions::from_uri(options.uri)};
    millrace::EventStream{pool, options.stream}.delete_stream();
  }
  return report.is_good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = pipeline::parse_options(argc, argv);
  if (options.help) {
    fmt::print("{}", pipeline::kHelp);
    return 0;
  }
  return options.worker_group.empty() ? run_pipeline(options) : pipeline::run_worker(options);
} catch (const pipeline::BadOption& error) {
  fmt::print(stderr, "pipeline: {}; see --help\n", error.what());
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "pipeline: {}\n", error.what());
  return 1;
}
