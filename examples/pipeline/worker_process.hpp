#pragma once

#include <sys/types.h>

#include <string>

#include "options.hpp"

namespace pipeline {

/// A worker in a process of its own: this program once more. It ends with this object.
class WorkerProcess {
 public:
  /// `options` are those of the program; the worker's name is its consumer's and its journal's.
  WorkerProcess(const Options& options, std::string group, std::string consumer,
                const std::string& journal_folder);
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;
  ~WorkerProcess();

  const std::string& group() const { return group_; }
  const std::string& consumer() const { return consumer_; }
  const std::string& journal() const { return journal_; }
  pid_t pid() const { return pid_; }
  bool was_killed() const { return was_killed_; }

  /// Throws if the process has ended although nobody told it to.
  void check();

  /// Stops it where it is, whatever it is doing, and lets it go on.
  void freeze();
  void thaw();

  /// SIGKILL: no destructor runs, nothing is said to the server.
  void kill();

  /// SIGTERM: the worker finishes what it does and leaves in good order. Throws if it does not.
  void stop();

 private:
  int wait(int flags);

  std::string group_;
  std::string consumer_;
  std::string journal_;
  pid_t pid_ = -1;  ///< -1: it has ended.
  bool was_killed_ = false;
};

}  // namespace pipeline
