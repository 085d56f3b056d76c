#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace::detail {

/// `text` as a message can show it: control bytes escaped, and cut after `longest` bytes.
std::string printable(std::string_view text, std::size_t longest = 200);

}  // namespace millrace::detail
