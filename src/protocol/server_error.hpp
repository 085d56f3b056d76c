#pragma once

#include <millrace/error.hpp>

#include "protocol/reply.hpp"

#include <string_view>

namespace millrace::detail {

/// Where an error was met, for its message.
struct ErrorContext {
  std::string_view command{};
  std::string_view key{};
  std::string_view endpoint{};
};

/// The error that a server's error line stands for, chosen by its first word, or by its text where
/// one word stands for many things. The message repeats no argument that the server quotes, since
/// it could be a payload.
Error server_error(std::string_view line, const ErrorContext& context);

/// As above, of an error reply, which knows where it came from.
Error server_error(ReplyView reply, std::string_view command, std::string_view key);

/// What a decoder found wrong with a reply of which it knew neither command nor key nor server.
ProtocolError in_context(const ProtocolError& error, const ErrorContext& context);

/// True if somebody ended a blocked read by CLIENT UNBLOCK … ERROR: an empty read, nothing more.
bool is_client_unblock(const Error& error);

/// What a message says at its end, if anything, about the effect of a call without a reply.
std::string_view effect(Outcome outcome) noexcept;

/// A copy of `error` with another outcome. Where its message ends with the effect, that of the copy
/// ends with the other one.
Error with_outcome(const Error& error, Outcome outcome);

}  // namespace millrace::detail
