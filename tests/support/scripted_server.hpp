#pragma once

#include "support/wait_until.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace millrace::test {

/// The server's end of one connection, for a script to play.
///
/// No call waits for longer than kGenerous; what goes wrong (a command that was not expected, a
/// client that does not come) fails the test from here.
class Peer {
 public:
  using Command = std::vector<std::string>;

  Peer(int descriptor, std::size_t number, const std::atomic<bool>& stopping) noexcept;

  /// Which connection this is: 0 is the first that the server had.
  std::size_t number() const noexcept { return number_; }

  /// The client's next command. Empty if the client has closed, or the test is over.
  Command read();

  /// Reads the next command, which has to be this one.
  void expect(std::initializer_list<std::string_view> words);

  /// Reads `CLIENT ID`, with which every set-up ends, and answers it.
  void expect_client_id(std::uint64_t id = 7);

  void send(std::string_view bytes);

  /// In two writes, so that the client reads twice: a Unix socket's second write waits until the
  /// first has been read; TCP's until the client's machine has it.
  void send_split(std::string_view bytes, std::size_t at);

  /// Reads and forgets everything until the client closes.
  void drain();

  /// Reads nothing until `condition` holds or the test is over.
  void wait_until(const std::function<bool()>& condition);

  /// Reads nothing, and keeps the connection, until the test is over.
  void stall();

  void pause(std::chrono::milliseconds time);

  void close();  ///< The client sees the end of the stream.
  void reset();  ///< The client sees "connection reset by peer".

 private:
  bool fill();
  bool is_readable();
  bool has_been_taken() const;

  std::atomic<int> descriptor_;
  std::size_t number_;
  const std::atomic<bool>& stopping_;
  std::string unread_;
};

/// A server that plays exact bytes, for what no real one says, or not at the right moment.
///
///     ScriptedServer server{[](Peer& peer) {
///       peer.expect_client_id();
///       peer.expect({"PING"});
///       peer.send("+PO");
///       peer.close();
///     }};
///     ConnectionPool pool{{.port = server.port()}};
///
/// Each connection runs the script on a thread of its own, which blocks all signals, and is closed
/// when the script returns. The destructor ends every wait and joins.
class ScriptedServer {
 public:
  using Script = std::function<void(Peer&)>;

  enum class Kind : std::uint8_t { kTcp, kUnix };

  explicit ScriptedServer(Script script, Kind kind = Kind::kTcp);
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  std::uint16_t port() const noexcept { return port_; }               ///< On 127.0.0.1.
  const std::string& path() const noexcept { return path_; }          ///< Of the Unix socket.
  std::size_t accepted() const noexcept { return accepted_.load(); }  ///< Connections so far.

 private:
  struct Session {
    Session(int descriptor, std::size_t number, const std::atomic<bool>& stopping) noexcept
        : peer{descriptor, number, stopping} {}
    Peer peer;
    std::thread thread{};
  };

  void listen_on_tcp();
  void listen_on_unix();
  void accept_all();

  Script script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::string path_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::size_t> accepted_{0};
  std::list<Session> sessions_;
  std::thread acceptor_;
};

}  // namespace millrace::test
