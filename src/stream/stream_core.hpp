#pragma once

#include <millrace/connection.hpp>
#include <millrace/error.hpp>
#include <millrace/stream_options.hpp>

#include "net/pool.hpp"
#include "protocol/server_error.hpp"

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace millrace::detail {

/// What an EventStream's copies share, and how its calls are made.
struct StreamCore {
  ConnectionPool pool;
  std::string key;
  StreamOptions options;

  /// The call of a command, and its reply decoded.
  template <typename Decode>
  auto ask(std::string_view command, Repeat repeat, WriteRequest write, Decode decode) const {
    return ask(CallSpec{.command = command, .key = key, .repeat = repeat}, write, decode);
  }

  template <typename Decode>
  auto ask(const CallSpec& spec, WriteRequest write, Decode decode) const {
    return decoded(spec.command, Pool::of(pool).call(spec, write), decode);
  }

  /// A script, whose only key is the stream.
  template <typename Decode>
  auto run(std::string_view name, const Script& script, std::span<const std::string_view> args,
           Decode decode) const {
    const std::string_view keys[] = {key};
    return decoded(name,
                   Pool::of(pool).eval(CallSpec{.command = name, .key = key}, script, keys, args),
                   decode);
  }

  /// Of a reply to `command`.
  template <typename Decode>
  auto decoded(std::string_view command, Reply reply, Decode decode) const {
    // The endpoint is for a message, when the reply has been taken apart: hence a copy of it.
    Reply::Endpoint endpoint;
    try {
      if constexpr (std::is_invocable_v<Decode, Reply>) {
        endpoint = reply.endpoint();
        return decode(std::move(reply));
      } else {
        return decode(reply.root());
      }
    } catch (const ProtocolError& error) {
      if (!endpoint) endpoint = reply.endpoint();
      throw in_context(
          error,
          {.command = command, .key = key, .endpoint = endpoint ? *endpoint : std::string{}});
    }
  }
};

/// What `call` gives, or the empty value if there is no such stream or group.
template <typename Call>
auto or_empty(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const NoGroupError&) {
    return {};
  }
}

/// Throws the error of a later step, whose outcome must not say that nothing was done.
[[noreturn]] void raise_after_a_part(const Error& error);

}  // namespace millrace::detail
