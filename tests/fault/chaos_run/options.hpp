#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace chaos {

/// What the command line asks for.
struct Options {
  std::uint64_t seed = 0;  ///< Drawn if it is not given.
  double minutes = 3;
  std::uint64_t entries = 0;  ///< By default as many a second as 200,000 in three minutes.
  std::string folder{};       ///< Where histories go: by default a temporary one.
  bool keep = false;          ///< Keep it although all is well.
  bool help = false;

  /// For a worker process: where the server is, its history, and its name, or `-` for one of its
  /// own making.
  std::string worker_uri{}, worker_history{}, worker_name{};

  std::chrono::milliseconds duration() const {
    return std::chrono::milliseconds{static_cast<std::int64_t>(minutes * 60'000)};
  }
};

struct BadOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

extern const std::string_view kHelp;

/// Throws BadOption.
Options parse_options(int argc, char** argv);

}  // namespace chaos
