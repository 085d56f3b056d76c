#include "worker/faults.hpp"

#include "protocol/server_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace millrace::detail {
namespace {

bool says(const Error& error, std::string_view words) {
  return std::string_view{error.what()}.find(words) != std::string_view::npos;
}

Remedy remedy_for_server_error(const Error& error) noexcept {
  if (is_client_unblock(error)) return Remedy::kNone;
  // Our own scripts' words: another worker has taken the name, or works with another min_idle.
  if (error.prefix() == "SUPERSEDED" || error.prefix() == "MINIDLE") return Remedy::kFail;
  // A server before 7.0 does not know the commands, which it says in other words in a script. Its
  // other ERRs may pass, such as the one of a server that has no room for another client.
  if (error.prefix() == "ERR" &&
      (says(error, "unknown command") || says(error, " command called from script"))) {
    return Remedy::kFail;
  }
  if (error.prefix() == "ERR") return Remedy::kRetrySlowly;
  return Remedy::kRetry;
}

}  // namespace

Remedy remedy_for(const Error& error) noexcept {
  switch (error.code()) {
    case Error::Code::kNoGroup:
      return Remedy::kRemakeGroup;
    case Error::Code::kAuth:
    case Error::Code::kPermission:
      return Remedy::kRetrySlowly;
    case Error::Code::kWrongType:
    case Error::Code::kUnsupported:
    case Error::Code::kInvalidArgument:
      return Remedy::kFail;
    case Error::Code::kReadOnly:
    case Error::Code::kCluster:
    case Error::Code::kProtocol:
      return Remedy::kReconnect;
    case Error::Code::kServer:
      return remedy_for_server_error(error);
    case Error::Code::kConnect:
    case Error::Code::kIo:
    case Error::Code::kTimeout:
    case Error::Code::kPoolTimeout:
    case Error::Code::kOutOfMemory:
    case Error::Code::kLoading:
      break;
  }
  return Remedy::kRetry;
}

std::optional<std::string> FaultLog::report(const Error& error, TimePoint now) {
  auto fault = std::find_if(faults_.begin(), faults_.end(), [&](const Fault& known) {
    return known.code == error.code() && known.prefix == error.prefix();
  });
  if (fault == faults_.end()) {
    faults_.push_back({.code = error.code(), .prefix = std::string{error.prefix()}, .said = now});
    said_ = true;
    return error.what();
  }
  ++fault->unsaid;
  if (now - fault->said < kRepeatEvery) return std::nullopt;
  fault->said = now;
  said_ = true;
  return fmt::format("{} ({} times since it was last said)", error.what(),
                     std::exchange(fault->unsaid, 0));
}

std::optional<std::string> FaultLog::recovered() {
  if (!std::exchange(said_, false)) return std::nullopt;
  return "working again";
}

}  // namespace millrace::detail
