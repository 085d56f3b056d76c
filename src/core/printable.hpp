#pragma once

#include <string>
#include <string_view>

namespace millrace::detail {

/// `text` as a message can show it: control bytes escaped, cut where it gets long.
std::string printable(std::string_view text);

}  // namespace millrace::detail
