#include "worker_process.hpp"

#include "support/history.hpp"
#include "support/wait_until.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include "worker.hpp"

namespace chaos {
namespace {

using millrace::test::Record;

pid_t spawn_self(std::vector<std::string> arguments, const std::string& log) {
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int output : {1, 2}) {
    ::posix_spawn_file_actions_addopen(&actions, output, log.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                       0600);
  }
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::system_error{error, std::generic_category(), "starting a worker"};
  return pid;
}

}  // namespace

WorkerProcess::WorkerProcess(std::string label, const std::string& name, const std::string& uri,
                             const std::string& folder)
    : file_{folder + "/" + label + ".history"},
      pid_{spawn_self(
          {"chaos", "--worker-uri", uri, "--worker-history", file_, "--worker-name", name},
          folder + "/" + label + ".log")} {
  done_.name = std::move(label);
}

WorkerProcess::~WorkerProcess() { kill(); }

bool WorkerProcess::is_stopped() const {
  return !done_.freezes.empty() && !done_.freezes.back().to;
}

void WorkerProcess::kill() {
  if (pid_ < 0) return;
  done_.killed = millrace::test::now();
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, -1), nullptr, 0);
}

void WorkerProcess::stop() {
  done_.freezes.push_back({millrace::test::now(), std::nullopt});
  ::kill(pid_, SIGSTOP);
}

void WorkerProcess::resume() {
  if (!is_stopped()) return;
  if (pid_ > 0) ::kill(pid_, SIGCONT);
  done_.freezes.back().to = millrace::test::now();
}

std::string WorkerProcess::terminate() {
  if (pid_ < 0) return {};
  ::kill(pid_, SIGTERM);
  std::optional<std::string> end;
  if (!millrace::test::wait_until([&] { return (end = ended()).has_value(); })) {
    kill();
    return fmt::format("{} did not end within 30 s of SIGTERM", label());
  }
  return *end;
}

std::optional<std::string> WorkerProcess::ended() {
  int status = 0;
  if (pid_ < 0) return std::string{};
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  pid_ = -1;
  if (WIFEXITED(status)) {
    if (WEXITSTATUS(status) == 0) return std::string{};
    return fmt::format("{} ended by itself with status {}", label(), WEXITSTATUS(status));
  }
  const auto records = millrace::test::read_history(file_);
  const auto aborting = std::ranges::find(records, Record::Event::kAborting, &Record::event);
  if (WTERMSIG(status) == SIGABRT && aborting != records.end()) {
    done_.killed = aborting->at;  // its other calls ended no earlier
    return std::string{};
  }
  return fmt::format("{} ended by itself with signal {}", label(), WTERMSIG(status));
}

std::vector<std::string> WorkerProcess::consumers() const {
  std::ifstream file{names_file(file_)};
  std::vector<std::string> names;
  for (std::string name; std::getline(file, name);) names.push_back(name);
  return names;
}

millrace::test::ProcessHistory WorkerProcess::history() const {
  auto history = done_;
  history.records = millrace::test::read_history(file_);
  return history;
}

}  // namespace chaos
