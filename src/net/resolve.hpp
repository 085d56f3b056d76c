#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::detail {

/// The addresses of `host` in numbers, IPv4 first as hiredis has it: not every machine with an IPv6
/// address can reach others by it. At least one. Throws ConnectError.
///
/// hiredis itself would try only the first address of a non-blocking connection.
std::vector<std::string> resolve(const std::string& host, std::uint16_t port);

}  // namespace millrace::detail
