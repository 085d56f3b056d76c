#include "worker_process.hpp"

#include <fmt/core.h>

#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace pipeline {
namespace {

pid_t spawn_self(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
  if (error != 0) throw std::system_error{error, std::generic_category(), "starting a worker"};
  return pid;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return fmt::format("signal {}", WTERMSIG(status));
  return fmt::format("status {}", WEXITSTATUS(status));
}

}  // namespace

WorkerProcess::WorkerProcess(const Options& options, std::string group, std::string consumer,
                             const std::string& journal_folder)
    : group_{std::move(group)},
      consumer_{std::move(consumer)},
      journal_{journal_folder + "/" + consumer_},
      pid_{spawn_self({"pipeline", "--uri", options.uri, "--stream", options.stream,
                       "--worker-group", group_, "--worker-consumer", consumer_, "--worker-journal",
                       journal_})} {}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : group_{std::move(other.group_)},
      consumer_{std::move(other.consumer_)},
      journal_{std::move(other.journal_)},
      pid_{std::exchange(other.pid_, -1)},
      was_killed_{other.was_killed_} {}

WorkerProcess::~WorkerProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  wait(0);
}

/// The status of the process if it has changed, as waitpid() has it, or -1.
int WorkerProcess::wait(int flags) {
  int status = -1;
  pid_t changed = -1;
  do {
    changed = ::waitpid(pid_, &status, flags);
  } while (changed < 0 && errno == EINTR);
  if (changed != pid_) return -1;
  if (!WIFSTOPPED(status)) pid_ = -1;
  return status;
}

void WorkerProcess::check() {
  if (pid_ < 0) return;
  if (const int status = wait(WNOHANG); status != -1) {
    throw std::runtime_error{
        fmt::format("worker {} has ended by itself, with {}", consumer_, describe(status))};
  }
}

void WorkerProcess::freeze() {
  ::kill(pid_, SIGSTOP);
  if (const int status = wait(WUNTRACED); !WIFSTOPPED(status)) {
    throw std::runtime_error{
        fmt::format("worker {} has ended by itself, with {}", consumer_, describe(status))};
  }
}

void WorkerProcess::thaw() { ::kill(pid_, SIGCONT); }

void WorkerProcess::kill() {
  ::kill(pid_, SIGKILL);
  wait(0);
  was_killed_ = true;
}

void WorkerProcess::stop() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGTERM);
  if (const int status = wait(0); status != 0) {
    throw std::runtime_error{
        fmt::format("worker {} did not end well: {}", consumer_, describe(status))};
  }
}

}  // namespace pipeline
