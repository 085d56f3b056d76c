#pragma once

#include <string_view>

namespace millrace::detail {

/// A Lua script that runs in the server, with the name that EVALSHA knows it by.
struct Script {
  std::string_view source{};
  std::string_view sha1{};  ///< Of exactly the bytes of `source`, in lower-case hex.
};

}  // namespace millrace::detail
