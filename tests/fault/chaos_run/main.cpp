// A long test of everything at once; see --help. run.cpp says what happens in which order,
// tests/support/invariants.hpp what must not.

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "options.hpp"
#include "report.hpp"
#include "run.hpp"
#include "worker.hpp"

namespace {

std::string make_folder(const std::string& asked_for) {
  if (!asked_for.empty()) {
    if (!std::filesystem::create_directory(asked_for)) {
      throw chaos::BadOption{"--folder is there already: " + asked_for};
    }
    return std::filesystem::absolute(asked_for);
  }
  std::string path = std::filesystem::temp_directory_path() / "millrace-chaos-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) throw std::runtime_error{"cannot make " + path};
  return path;
}

int run_chaos(chaos::Options options) {
  options.folder = make_folder(options.folder);
  fmt::print("seed {}\n", options.seed);
  std::fflush(stdout);
  bool keep = true;
  int status = 1;
  try {
    const chaos::Report report = chaos::run(options);
    fmt::print("{}", report.text());
    keep = options.keep || !report.is_good();
    status = report.is_good() ? 0 : 1;
  } catch (const chaos::Interrupted&) {
    keep = options.keep;
    status = 130;
  } catch (const std::exception& error) {
    fmt::print("PROBLEM: {}\n", error.what());
  }
  if (keep) {
    fmt::print("histories, logs and the faults in their order: {}\n", options.folder);
  } else {
    std::filesystem::remove_all(options.folder);
  }
  if (status == 1) {
    fmt::print("again: tests/fault/chaos --seed {} --minutes {} --entries {}\n", options.seed,
               options.minutes, options.entries);
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = chaos::parse_options(argc, argv);
  if (options.help) {
    fmt::print("{}", chaos::kHelp);
    return 0;
  }
  return options.worker_uri.empty() ? run_chaos(options) : chaos::run_worker(options);
} catch (const chaos::BadOption& error) {
  fmt::print(stderr, "chaos: {}; see --help\n", error.what());
  return 2;
} catch (const std::exception& error) {
  fmt::print(stderr, "chaos: {}\n", error.what());
  return 1;
}
