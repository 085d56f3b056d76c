#pragma once

#include <millrace/error.hpp>

#include <string_view>

namespace millrace::detail {

/// Where an error was met, for its message.
struct ErrorContext {
  std::string_view command{};
  std::string_view key{};
  std::string_view endpoint{};
};

/// The error that a server's error line stands for, chosen by its first word alone. The message
/// repeats no argument that the server quotes, since it could be a payload.
Error server_error(std::string_view line, const ErrorContext& context);

/// True if somebody ended a blocked read by CLIENT UNBLOCK … ERROR: an empty read, nothing more.
bool is_client_unblock(const Error& error);

/// A copy of `error` with another outcome.
Error with_outcome(const Error& error, Outcome outcome);

}  // namespace millrace::detail
