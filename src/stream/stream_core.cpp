#include "stream/stream_core.hpp"

#include "core/printable.hpp"

#include <fmt/format.h>

namespace millrace::detail {
namespace {

std::string endpoint_of(const ConnectionPool& pool) {
  const ConnectionOptions& options = Pool::of(pool).options();
  if (!options.unix_socket.empty()) return options.unix_socket;
  return fmt::format("{}:{}", options.host, options.port);
}

}  // namespace

Error StreamCore::error_of(std::string_view command, std::string_view line) const {
  return server_error(line, {.command = command, .key = key, .endpoint = endpoint_of(pool)});
}

void StreamCore::raise_in_context(std::string_view command, const ProtocolError& error) const {
  throw ProtocolError{
      fmt::format("{} on '{}' at {}: {}", command, printable(key), endpoint_of(pool), error.what()),
      error.outcome()};
}

void raise_after_a_part(const Error& error) {
  const bool says_nothing_done = error.outcome() == Outcome::kNotApplied;
  with_outcome(error, says_nothing_done ? Outcome::kApplied : error.outcome()).raise();
}

}  // namespace millrace::detail
