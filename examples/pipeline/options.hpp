#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include "records.hpp"

namespace pipeline {

/// The command line, understood.
struct Options {
  std::string uri{};
  std::string input{"-"};  ///< A file's name; `-`: standard input.
  Format format = Format::kAuto;
  std::string stream{};
  bool keep = false;
  bool help = false;

  // The program starts itself again for each worker, with these.
  std::string worker_group{};  ///< Empty: this is the program that the user has started.
  std::string worker_consumer{};
  std::string worker_journal{};
};

/// The command line makes no sense. The message says which part.
struct BadOption : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Options parse_options(int argc, char** argv);

extern const std::string_view kHelp;

}  // namespace pipeline
