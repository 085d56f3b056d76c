#pragma once

#include "protocol/request.hpp"

namespace millrace::detail {

/// The smallest request.
inline constexpr auto write_ping = [](RequestBuffer& request) { request.command("PING", 1); };

}  // namespace millrace::detail
