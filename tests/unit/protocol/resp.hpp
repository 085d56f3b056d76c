#pragma once

#include "protocol/reply.hpp"

#include <initializer_list>
#include <string>
#include <string_view>

namespace millrace::detail {

/// A reply from its bytes, in RESP2 or RESP3. Independent of hiredis, which may know RESP2 alone.
/// Throws std::invalid_argument where `wire` is not exactly one reply.
Reply resp(std::string_view wire);

/// The bytes of one command of these words.
std::string wire(std::initializer_list<std::string_view> words);

}  // namespace millrace::detail
