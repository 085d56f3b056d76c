#pragma once

#include <millrace/connection.hpp>

#include "support/throwaway_server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace millrace::test {

/// A TCP proxy between the library and a server, which does what networks do.
///
/// Its script is exact: each act waits for the `nth` request from now on that contains `word` (an
/// empty one is in all of them), so no test depends on timing. Acts are independent of each other:
/// where two wait for one request, the older one has it.
class Proxy {
 public:
  explicit Proxy(const ThrowawayServer& server);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy();

  /// As the server's options, but through here.
  ConnectionOptions options() const;

  // ---- the script

  /// The request reaches the server and is carried out; its reply is lost, and the connection
  /// breaks.
  void lose_reply_to(const std::string& word, std::size_t nth = 1);
  /// The request itself is lost, and the connection breaks.
  void lose_request(const std::string& word, std::size_t nth = 1);

  /// The connection breaks in the middle of the reply: after so many bytes of the first one, from
  /// this request on, that is longer.
  void truncate_reply_to(const std::string& word, std::size_t bytes, std::size_t nth = 1);

  /// It vanishes, and the connection stays: the client waits for nothing.
  void drop_reply_to(const std::string& word, std::size_t nth = 1);
  void drop_request(const std::string& word, std::size_t nth = 1);

  /// The connection breaks while the request is on its way, where it stays until deliver().
  void detain_request(const std::string& word, std::size_t nth = 1);
  /// Has all that was detained arrive, and says what the server answers. To the client it is too
  /// late.
  std::string deliver();

  /// The reply comes so much later.
  void delay_reply_to(const std::string& word, std::chrono::milliseconds delay,
                      std::size_t nth = 1);

  /// The server never sees the request, nor those that came in one piece with it: each is answered
  /// with this error, as "OOM command not allowed".
  void answer_with_error(const std::string& word, const std::string& error, std::size_t nth = 1);

  /// True once all that was asked for above has happened; false if nothing was.
  bool has_lost() const;
  /// How many of these acts have happened so far.
  std::size_t acted() const;

  // ---- the weather

  /// Every reply comes so much later; 0: none any more.
  void delay_replies(std::chrono::milliseconds delay);

  /// Of a reply longer than this, what goes beyond it never arrives: the way is too narrow. None:
  /// all arrives again.
  void limit_replies(std::optional<std::size_t> bytes);

  /// Nothing gets through any more, in either direction, and nobody is told; until flow().
  void stall();
  void flow();

  /// Breaks all connections there are, the half-open ones as well.
  void cut();

  enum class End : std::uint8_t { kServer, kClient };
  /// Half-opens all connections there are: `that` end goes on as if nothing had happened, the other
  /// one sees its connection closed.
  void half_open(End that);

  /// Connections that were made to the proxy so far.
  std::size_t accepted() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace millrace::test
