#include "support/throwaway_server.hpp"

#include "support/raw_client.hpp"
#include "support/wait_until.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace millrace::test {

namespace {

namespace fs = std::filesystem;

std::optional<fs::path> find_in_path(const char* program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path{folder} / program;
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return std::nullopt;
}

fs::path make_folder() {
  std::string path = (fs::temp_directory_path() / "millrace-XXXXXX").string();
  if (::mkdtemp(path.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + path);
  }
  return path;
}

/// What the child does between fork and exec. Other threads may have held any lock, so this calls
/// the kernel and nothing else.
[[noreturn]] void become_server(char* const argv[], const char* log, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  const int input = ::open("/dev/null", O_RDONLY);
  const int output = ::open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  // A socket of the test that stayed open here would hide from its peer that the test closed it.
  ::close_range(3, ~0U, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(argv[0], argv);
  ::_exit(127);
}

ServerVersion parse_version(RawClient& raw) {
  const std::string info = raw("INFO", "server").text;
  // Every Valkey calls itself Redis 7.2.4 too.
  const bool valkey = info.find("valkey_version:") != std::string::npos;
  ServerVersion version{.product = valkey ? "valkey" : "redis"};
  const std::string text = info_field(raw, "server", version.product + "_version");
  if (std::sscanf(text.c_str(), "%d.%d.%d", &version.major, &version.minor, &version.patch) != 3) {
    throw std::runtime_error("the test's server has a version that is none: " + text);
  }
  return version;
}

}  // namespace

bool ServerVersion::is_redis_from(int from_major, int from_minor) const {
  return is_redis() && (major > from_major || (major == from_major && minor >= from_minor));
}

std::string ServerVersion::to_string() const {
  return product + ' ' + std::to_string(major) + '.' + std::to_string(minor) + '.' +
         std::to_string(patch);
}

fs::path server_program() {
  if (const char* given = std::getenv("MILLRACE_TEST_SERVER"); given != nullptr && *given != '\0') {
    if (::access(given, X_OK) == 0) return given;
    throw std::runtime_error(std::string{"MILLRACE_TEST_SERVER is no program: "} + given);
  }
  for (const char* name : {"redis-server", "valkey-server"}) {
    if (const auto found = find_in_path(name)) return *found;
  }
  throw std::runtime_error(
      "no server to test against: install redis-server, or name one in MILLRACE_TEST_SERVER");
}

std::uint16_t free_loopback_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = ::bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  ::close(socket);
  if (!bound) throw std::system_error(errno, std::generic_category(), "no free loopback port");
  return ntohs(address.sin_port);
}

ThrowawayServer::ThrowawayServer(ServerOptions options)
    : options_{std::move(options)}, folder_{make_folder()} {
  try {
    start();
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
    throw;
  }
}

ThrowawayServer::~ThrowawayServer() {
  end(SIGKILL);
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

ConnectionOptions ThrowawayServer::options() const {
  ConnectionOptions options;
  if (options_.listen == ServerOptions::Listen::kTcp) {
    options.port = port_;
  } else {
    options.unix_socket = folder_ / "socket";
  }
  // Far above what a call takes: only tests of time-outs, which set their own, may ever see it.
  options.connect_timeout = kGenerous;
  options.command_timeout = kGenerous;
  return options;
}

void ThrowawayServer::launch() {
  std::vector<std::string> words{server_program(), "--dir", folder_.string(), "--daemonize", "no",
                                 "--bind", "127.0.0.1", "--port", std::to_string(port_),
                                 "--unixsocket", folder_ / "socket", "--save", "", "--appendonly",
                                 "no", "--shutdown-timeout", "0",
                                 // Time-outs of blocked clients are checked this often a second.
                                 "--hz", "100", "--enable-debug-command", "yes"};
  words.insert(words.end(), options_.args.begin(), options_.args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string log_path = folder_ / "log";

  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become_server(argv.data(), log_path.c_str(), parent);
}

bool ThrowawayServer::became_ready() {
  bool ended = false;
  const bool ready = wait_until([&] {
    if (::waitpid(pid_, nullptr, WNOHANG) == pid_) {
      pid_ = -1;
      ended = true;
      return true;
    }
    try {
      RawClient raw{options()};
      if (info_field(raw, "server", "process_id") != std::to_string(pid_)) return false;
      if (!options_.ready_while_loading && info_field(raw, "persistence", "loading") != "0") {
        return false;
      }
      version_ = parse_version(raw);
      return true;
    } catch (const std::runtime_error&) {
      return false;
    }
  });
  return ready && !ended;
}

void ThrowawayServer::start() {
  const bool tcp = options_.listen == ServerOptions::Listen::kTcp;
  const bool keeps_port = port_ != 0;
  for (int attempts_left = tcp && !keeps_port ? 5 : 1; attempts_left > 0; --attempts_left) {
    if (tcp && !keeps_port) {
      port_ = free_loopback_port();  // its process id tells whether the server has it
    }
    launch();
    if (became_ready()) return;
    end(SIGKILL);
  }
  throw std::runtime_error("the test's server did not start: " + server_program().string() +
                           "\nIts log:\n" + log());
}

void ThrowawayServer::start(std::vector<std::string> args) {
  options_.args = std::move(args);
  start();
}

void ThrowawayServer::stop() {
  resume();
  end(SIGTERM);
}

void ThrowawayServer::kill() { end(SIGKILL); }

void ThrowawayServer::pause() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
}

void ThrowawayServer::resume() {
  if (pid_ > 0) ::kill(pid_, SIGCONT);
}

void ThrowawayServer::end(int signal) {
  if (pid_ <= 0) return;
  ::kill(pid_, signal);
  const bool gone = wait_until([&] { return ::waitpid(pid_, nullptr, WNOHANG) != 0; });
  if (!gone) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
}

std::string ThrowawayServer::log() const {
  std::ifstream file{folder_ / "log"};
  return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace millrace::test
