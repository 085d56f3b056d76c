#pragma once

#include <millrace/connection.hpp>
#include <millrace/stream_id.hpp>

#include "support/raw_reply.hpp"

#include <array>
#include <concepts>
#include <span>
#include <string>
#include <string_view>

namespace millrace::test {

/// One plain connection, for any command, with nothing of the library in it: what a test checks the
/// library against. Everything throws std::runtime_error where the server is gone or silent.
///
///     RawClient raw{server.options()};
///     EXPECT_EQ(raw("XADD", "s", "1-0", "f", "v"), R"("1-0")");
class RawClient {
 public:
  /// Uses the address of `options` alone. `protocol` 3 says HELLO 3.
  explicit RawClient(const ConnectionOptions& options, int protocol = 2);
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient();

  template <typename... Words>
  RawReply operator()(const Words&... words) {
    send(words...);
    return receive();
  }

  /// For a command whose reply is to come later.
  template <typename... Words>
  void send(const Words&... words) {
    const std::array<std::string, sizeof...(Words)> list{word(words)...};
    send_words(list);
  }

  RawReply call(std::span<const std::string> words) {
    send_words(words);
    return receive();
  }

  RawReply receive();

  /// True if the server closes the connection before it says anything more.
  bool is_closed_by_server();

 private:
  static std::string word(std::string_view text) { return std::string{text}; }
  static std::string word(const StreamId& id) { return id.to_string(); }
  template <std::integral T>
  static std::string word(T number) {
    return std::to_string(number);
  }

  void send_words(std::span<const std::string> words);
  RawReply read_reply();
  std::string read_line();
  std::string read_bytes(std::size_t size);
  bool fill();

  int socket_ = -1;
  std::string buffer_{};
  std::size_t used_ = 0;
};

/// The value of `name` in a reply of INFO.
std::string info_field(RawClient& raw, std::string_view section, std::string_view name);

}  // namespace millrace::test
