#pragma once

#include "protocol/reply_shape.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace millrace::test {

/// How many of so many bytes come next, at least one. Each reading takes a copy, and cuts alike.
using Cut = std::function<std::size_t(std::size_t left)>;

/// What ReplyReader makes of `bytes`, which come in pieces: after each piece the replies that it
/// completed, decoded as `shape`, and at last what was wrong. In words, to be compared.
std::string read_by_us(detail::ReplyShape shape, std::string_view bytes, Cut cut);

/// The same by hiredis alone, with the reply functions that it has by itself.
std::string read_by_hiredis(detail::ReplyShape shape, std::string_view bytes, Cut cut);

/// False where an array announces 10,000 elements or more: hiredis by itself makes room for all
/// of them at once, and then looks at each of them.
bool is_affordable(std::string_view bytes);

}  // namespace millrace::test
