#include "net/resolve.hpp"

#include <millrace/error.hpp>

#include "core/printable.hpp"
#include "net/poll.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

namespace millrace::detail {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const noexcept { ::freeaddrinfo(addresses); }
};

std::string numeric(const addrinfo& address) {
  std::array<char, NI_MAXHOST> text{};
  if (::getnameinfo(address.ai_addr, address.ai_addrlen, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0) {
    return {};
  }
  return text.data();
}

}  // namespace

std::vector<std::string> resolve(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, &hints, &found);
  const int error_number = errno;
  const std::unique_ptr<addrinfo, FreeAddresses> owner{found};

  std::vector<std::string> addresses;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      if (at->ai_family != family) continue;
      auto text = numeric(*at);
      if (text.empty() || std::find(addresses.begin(), addresses.end(), text) != addresses.end()) {
        continue;
      }
      addresses.push_back(std::move(text));
    }
  }
  if (!addresses.empty()) return addresses;
  const auto why = failure == EAI_SYSTEM ? system_message(error_number)
                   : failure != 0        ? std::string{::gai_strerror(failure)}
                                         : std::string{"no address"};
  throw ConnectError{fmt::format("cannot connect to {}:{}: the name does not resolve: {}",
                                 printable(host), port, why)};
}

}  // namespace millrace::detail
