#pragma once

#include <cstdlib>

/// Where the examples find the server: the first argument, or MILLRACE_URI, or this machine.
inline const char* server_uri(int argc, char** argv) {
  if (argc > 1) return argv[1];
  const char* const uri = std::getenv("MILLRACE_URI");
  return uri != nullptr ? uri : "redis://127.0.0.1:6379";
}
