#include "net/connection.hpp"

namespace millrace::detail {
namespace {

void write_script(RequestBuffer& request, std::string_view command, std::string_view script,
                  std::span<const std::string_view> keys, std::span<const std::string_view> args) {
  request.command(command, 3 + keys.size() + args.size()).arg(script).arg(keys.size());
  for (const auto key : keys) request.arg(key);
  for (const auto arg : args) request.arg(arg);
}

}  // namespace

Reply Connection::eval(const CallSpec& spec, const Script& script,
                       std::span<const std::string_view> keys,
                       std::span<const std::string_view> args) {
  try {
    return call(spec, [&](RequestBuffer& request) {
      write_script(request, "EVALSHA", script.sha1, keys, args);
    });
  } catch (const ServerError& error) {
    if (error.prefix() != "NOSCRIPT") throw;
  }
  return call(spec, [&](RequestBuffer& request) {
    write_script(request, "EVAL", script.source, keys, args);
  });
}

}  // namespace millrace::detail
