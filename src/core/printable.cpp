#include "core/printable.hpp"

#include <fmt/format.h>

#include <iterator>

namespace millrace::detail {
namespace {
constexpr std::size_t kLongestShown = 200;
}

std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, kLongestShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", byte);
    } else {
      shown.push_back(c);
    }
  }
  if (text.size() > kLongestShown) shown += "...";
  return shown;
}

}  // namespace millrace::detail
