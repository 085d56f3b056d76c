#include "core/printable.hpp"

#include <fmt/format.h>

#include <iterator>

namespace millrace::detail {

std::string printable(std::string_view text, std::size_t longest) {
  std::string shown;
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      fmt::format_to(std::back_inserter(shown), "\\x{:02x}", byte);
    } else {
      shown.push_back(c);
    }
  }
  if (text.size() > longest) shown += "...";
  return shown;
}

}  // namespace millrace::detail
