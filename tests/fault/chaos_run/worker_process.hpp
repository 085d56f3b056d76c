#pragma once

#include "support/invariants.hpp"

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace chaos {

/// A worker process, and what was done to it. It ends with this object.
class WorkerProcess {
 public:
  /// `folder` gets its history, and `<label>.log` what it says; `name` is that of its consumers, or
  /// `-`.
  WorkerProcess(std::string label, const std::string& name, const std::string& uri,
                const std::string& folder);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  const std::string& label() const { return done_.name; }
  bool is_stopped() const;

  void kill();    ///< SIGKILL.
  void stop();    ///< SIGSTOP.
  void resume();  ///< SIGCONT; nothing if it is not stopped.
  /// SIGTERM, and waits for its end. Says what was wrong with that, or nothing.
  std::string terminate();

  /// nullopt: it runs. Else what ended it: nothing if it was kill(), or a poison entry.
  std::optional<std::string> ended();

  /// Names of its consumers; none until it is ready.
  std::vector<std::string> consumers() const;

  /// With its history as it is now.
  millrace::test::ProcessHistory history() const;

 private:
  millrace::test::ProcessHistory done_{};
  std::string file_;
  pid_t pid_ = -1;
};

}  // namespace chaos
