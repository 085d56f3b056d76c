#pragma once

#include <millrace/connection.hpp>

#include "support/throwaway_server.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace millrace::test {

/// Stands between the library and a server, and does what networks do. Each of its acts is exact:
/// it waits for a request that names a command, so no test depends on timing.
class Proxy {
 public:
  explicit Proxy(const ThrowawayServer& server);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  ~Proxy();

  /// As the server's options, but through here.
  ConnectionOptions options() const;

  /// The `nth` request from now on that contains `word` reaches the server and is carried out; its
  /// reply is lost, and the connection breaks.
  void lose_reply_to(const std::string& word, std::size_t nth = 1);

  /// As above, but the request itself is lost.
  void lose_request(const std::string& word, std::size_t nth = 1);

  /// True once what lose_reply_to() or lose_request() asked for has happened.
  bool has_lost() const;

  /// Of a reply longer than this, what goes beyond it never arrives: the way is too narrow. None:
  /// all arrives again.
  void limit_replies(std::optional<std::size_t> bytes);

  /// Nothing gets through any more, in either direction, and nobody is told; until flow().
  void stall();
  void flow();

  /// Breaks all connections there are.
  void cut();

  /// Connections that were made to the proxy so far.
  std::size_t accepted() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace millrace::test
