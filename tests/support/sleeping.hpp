#pragma once

#include <unistd.h>

#include <fstream>
#include <string>

namespace millrace::test {

/// True once this thread of the process sleeps: having nothing else to wait for, it waits for what
/// the test is about.
inline bool sleeps(pid_t thread) {
  std::ifstream file{"/proc/self/task/" + std::to_string(thread) + "/stat"};
  std::string number, name, state;
  return file >> number >> name >> state && state == "S";
}

}  // namespace millrace::test
