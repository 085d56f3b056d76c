#pragma once

#include <netdb.h>

namespace millrace::test {

/// True if this machine has that name for itself; a bare chroot may not.
inline bool knows_localhost() {
  addrinfo* found = nullptr;
  if (::getaddrinfo("localhost", nullptr, nullptr, &found) != 0) return false;
  ::freeaddrinfo(found);
  return true;
}

}  // namespace millrace::test
