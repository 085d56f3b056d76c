#pragma once

#include "support/raw_client.hpp"
#include "support/throwaway_server.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::test {

/// What a server carries out, as MONITOR shows it from the constructor on.
class Monitor {
 public:
  static constexpr std::string_view kMark = "the mark";

  explicit Monitor(const ThrowawayServer& server) : raw_{server.options()} { raw_("MONITOR"); }

  /// The next command whose line has this word.
  std::string next(std::string_view word) {
    for (;;) {
      std::string line = raw_.receive().text;
      if (line.find(word) != std::string::npos) return line;
    }
  }

  /// All lines up to `ECHO kMark`, which the test has sent.
  std::vector<std::string> until_mark() {
    std::vector<std::string> lines;
    for (;;) {
      std::string line = raw_.receive().text;
      if (sent(line) == "ECHO" && line.find(kMark) != std::string::npos) return lines;
      lines.push_back(std::move(line));
    }
  }

  /// Of a line, the command's name; empty for what a script had carried out.
  static std::string sent(const std::string& line) {
    if (line.find(" lua] ") != std::string::npos) return "";
    const auto begin = line.find("] \"") + 3;
    return line.substr(begin, line.find('"', begin) - begin);
  }

 private:
  RawClient raw_;
};

}  // namespace millrace::test
