#pragma once

#include <cstdlib>

/// Where the server is if nothing else is said: MILLRACE_URI, or this machine.
inline const char* default_uri() {
  const char* const uri = std::getenv("MILLRACE_URI");
  return uri != nullptr ? uri : "redis://127.0.0.1:6379";
}

/// Where the examples find the server: the first argument, or what default_uri() says.
inline const char* server_uri(int argc, char** argv) { return argc > 1 ? argv[1] : default_uri(); }
