#pragma once

#include <millrace/connection.hpp>

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace millrace::test {

/// What runs: the product by its lower-case name, and the version it gives itself.
struct ServerVersion {
  std::string product{};
  int major = 0, minor = 0, patch = 0;

  bool is_redis() const { return product == "redis"; }
  /// A Redis of this version or newer; no Valkey is one.
  bool is_redis_from(int from_major, int from_minor) const;
  std::string to_string() const;
};

/// How a test's own server is started.
struct ServerOptions {
  enum class Listen : std::uint8_t { kUnixSocket, kTcp };

  Listen listen = Listen::kUnixSocket;
  std::vector<std::string> args{};   ///< As on its command line; they win over the defaults.
  bool ready_while_loading = false;  ///< Do not wait for the end of LOADING.
};

/// A server of this test's own: started empty, on a Unix socket in a folder of its own or on a free
/// loopback port, ready when the constructor returns, and gone with this object.
///
/// The program is the one that the environment variable MILLRACE_TEST_SERVER names, else
/// redis-server or valkey-server in the PATH. Where it cannot be had or does not start,
/// std::runtime_error says why, with the server's log.
///
/// The server also ends with the thread that started it, so start it on one that outlives its use.
class ThrowawayServer {
 public:
  explicit ThrowawayServer(ServerOptions options = {});
  ThrowawayServer(const ThrowawayServer&) = delete;
  ThrowawayServer& operator=(const ThrowawayServer&) = delete;
  ~ThrowawayServer();

  /// How to reach it.
  ConnectionOptions options() const;

  pid_t pid() const noexcept { return pid_; }
  const ServerVersion& version() const noexcept { return version_; }
  const std::filesystem::path& folder() const noexcept { return folder_; }
  std::uint16_t port() const noexcept { return port_; }

  /// Ends it as an operator would, and waits until it is gone.
  void stop();
  /// Ends it as a power cut would, and waits until it is gone.
  void kill();
  /// Starts it again at the same address, with `args` in place of those of the options if given.
  void start();
  void start(std::vector<std::string> args);
  void restart() {
    stop();
    start();
  }

  /// It keeps its connections and says nothing (SIGSTOP).
  void pause();
  void resume();

  std::string log() const;

 private:
  void launch();
  bool became_ready();
  void end(int signal);

  ServerOptions options_;
  std::filesystem::path folder_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
  ServerVersion version_{};
};

/// The path of the server program. Throws std::runtime_error if there is none.
std::filesystem::path server_program();

/// A TCP port that was free a moment ago. Another process may take it first.
std::uint16_t free_loopback_port();

}  // namespace millrace::test
