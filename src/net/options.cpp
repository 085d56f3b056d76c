#include "net/options.hpp"

#include <millrace/error.hpp>

#include "core/clock.hpp"
#include "core/printable.hpp"
#include "net/reply_reader.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string_view>

namespace millrace::detail {
namespace {

using std::chrono::milliseconds;

/// hiredis copies sizeof(sun_path) - 1 bytes and may leave the last byte as it was found, so the
/// longest path that is sure to end in a zero has one byte less.
constexpr std::size_t kLongestSocketPath = 106;

/// The kernel takes no more seconds for TCP_KEEPIDLE.
constexpr std::chrono::seconds kLongestKeepalive{32'767};

template <typename Value>
[[noreturn]] void refuse(std::string_view option, const Value& value, std::string_view rule) {
  throw InvalidArgument{fmt::format("{} is {}: it has to be {}", option, value, rule)};
}

[[noreturn]] void refuse_text(std::string_view option, std::string_view value,
                              std::string_view rule) {
  refuse(option, fmt::format("'{}'", printable(value)), rule);
}

[[noreturn]] void refuse_time(std::string_view option, milliseconds value, std::string_view rule) {
  refuse(option, fmt::format("{} ms", value.count()), rule);
}

void check_longest(std::string_view option, milliseconds value) {
  if (value > kLongestTime) refuse_time(option, value, "at most ten years");
}

void check_positive(std::string_view option, milliseconds value) {
  if (value <= milliseconds{0}) refuse_time(option, value, "more than 0");
  check_longest(option, value);
}

void check_not_negative(std::string_view option, milliseconds value) {
  if (value < milliseconds{0}) refuse_time(option, value, "0 or more");
  check_longest(option, value);
}

bool has_zero_byte(std::string_view text) { return text.find('\0') != std::string_view::npos; }

void check_place(const ConnectionOptions& options) {
  if (!options.unix_socket.empty()) {
    if (has_zero_byte(options.unix_socket)) {
      refuse_text("unix_socket", options.unix_socket, "a path without zero bytes");
    }
    if (options.unix_socket.size() > kLongestSocketPath) {
      refuse_text("unix_socket", options.unix_socket,
                  fmt::format("a path of at most {} bytes, not {}", kLongestSocketPath,
                              options.unix_socket.size()));
    }
    return;
  }
  if (options.host.empty()) refuse_text("host", options.host, "a name or an address");
  if (has_zero_byte(options.host)) {
    refuse_text("host", options.host, "a name or an address, without zero bytes");
  }
  if (options.port == 0) refuse("port", options.port, "1 to 65535");
}

void check_identity(const ConnectionOptions& options) {
  // Values stay out of these messages: a username can be a secret that was put in the wrong place.
  if (options.credentials && !(options.username.empty() && options.password.empty())) {
    throw InvalidArgument{
        "credentials and username or password are given: it has to be one of them"};
  }
  if (!options.username.empty() && options.password.empty()) {
    throw InvalidArgument{"username is given without a password: give both, or neither"};
  }
  const auto is_allowed = [](char c) { return c >= '!' && c <= '~'; };
  if (!std::all_of(options.client_name.begin(), options.client_name.end(), is_allowed)) {
    refuse_text("client_name", options.client_name,
                "printable ASCII without spaces and newlines, as CLIENT SETNAME wants it");
  }
}

void check_keepalive(milliseconds value) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(value);
  if (value < milliseconds{0} || whole != value || whole > kLongestKeepalive) {
    refuse_time(
        "tcp_keepalive", value,
        fmt::format("0 (off), or whole seconds from 1 s to {} s", kLongestKeepalive.count()));
  }
}

void check_protocol(int resp_version) {
  if (resp_version != 2 && resp_version != 3) refuse("resp_version", resp_version, "2 or 3");
  if (resp_version == 3 && !ReplyReader::reads_resp3()) {
    throw UnsupportedError{
        "resp_version is 3: the hiredis that millrace was built with reads RESP2 only; use 2, or "
        "build with hiredis 1.0 or newer"};
  }
}

}  // namespace

void check(const ConnectionOptions& options) {
  check_place(options);
  check_identity(options);
  check_positive("connect_timeout", options.connect_timeout);
  check_positive("command_timeout", options.command_timeout);
  check_keepalive(options.tcp_keepalive);
  check_protocol(options.resp_version);
}

void check(const PoolOptions& options) {
  if (options.max_connections == 0)
    refuse("max_connections", options.max_connections, "at least 1");
  if (options.min_idle_connections > options.max_connections) {
    refuse("min_idle_connections", options.min_idle_connections,
           fmt::format("at most max_connections, which is {}", options.max_connections));
  }
  check_not_negative("wait_timeout", options.wait_timeout);
  check_positive("max_idle_time", options.max_idle_time);
  check_not_negative("max_lifetime", options.max_lifetime);
}

}  // namespace millrace::detail
