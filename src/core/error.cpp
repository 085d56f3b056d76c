#include <millrace/error.hpp>

#include <algorithm>

namespace millrace {

Error::Error(Code code, const std::string& message, Outcome outcome, std::string_view prefix)
    : std::runtime_error{message}, code_{code}, outcome_{outcome} {
  prefix_size_ = static_cast<std::uint8_t>(std::min(prefix.size(), prefix_.size()));
  std::copy_n(prefix.begin(), prefix_size_, prefix_.begin());
}

bool Error::retryable() const noexcept {
  switch (code_) {
    case Code::kConnect:
    case Code::kIo:
    case Code::kTimeout:
    case Code::kPoolTimeout:
    case Code::kReadOnly:
    case Code::kOutOfMemory:
    case Code::kLoading:
      return true;
    case Code::kCluster:
      return prefix() != "CROSSSLOT";
    case Code::kServer:
      return prefix() == "BUSY" || prefix() == "MASTERDOWN" || prefix() == "MISCONF" ||
             prefix() == "NOREPLICAS" || prefix() == "UNBLOCKED";
    case Code::kProtocol:
    case Code::kInvalidArgument:
    case Code::kUnsupported:
    case Code::kNoGroup:
    case Code::kWrongType:
    case Code::kAuth:
    case Code::kPermission:
      break;
  }
  return false;
}

void Error::raise() const {
  // A copy of the right class, with what the base holds carried over whole.
  const auto as = [this]<typename E>(E error) {
    static_cast<Error&>(error) = *this;
    throw error;  // NOLINT(misc-throw-by-value-catch-by-reference)
  };
  switch (code_) {
    case Code::kConnect:
      as(ConnectError{{}});
      break;
    case Code::kIo:
      as(IoError{{}});
      break;
    case Code::kTimeout:
      as(TimeoutError{{}});
      break;
    case Code::kPoolTimeout:
      as(PoolTimeout{{}});
      break;
    case Code::kProtocol:
      as(ProtocolError{{}});
      break;
    case Code::kInvalidArgument:
      as(InvalidArgument{{}});
      break;
    case Code::kUnsupported:
      as(UnsupportedError{{}});
      break;
    case Code::kServer:
      as(ServerError{{}});
      break;
    case Code::kNoGroup:
      as(NoGroupError{{}});
      break;
    case Code::kWrongType:
      as(WrongTypeError{{}});
      break;
    case Code::kReadOnly:
      as(ReadOnlyError{{}});
      break;
    case Code::kOutOfMemory:
      as(OutOfMemoryError{{}});
      break;
    case Code::kAuth:
      as(AuthError{{}});
      break;
    case Code::kPermission:
      as(PermissionError{{}});
      break;
    case Code::kLoading:
      as(LoadingError{{}});
      break;
    case Code::kCluster:
      as(ClusterError{{}});
      break;
  }
  throw *this;
}

ConnectError::ConnectError(const std::string& message)
    : Error{Code::kConnect, message, Outcome::kNotApplied} {}

IoError::IoError(const std::string& message, Outcome outcome)
    : Error{Code::kIo, message, outcome} {}

TimeoutError::TimeoutError(const std::string& message, Outcome outcome)
    : Error{Code::kTimeout, message, outcome} {}

PoolTimeout::PoolTimeout(const std::string& message)
    : Error{Code::kPoolTimeout, message, Outcome::kNotApplied} {}

ProtocolError::ProtocolError(const std::string& message, Outcome outcome)
    : Error{Code::kProtocol, message, outcome} {}

InvalidArgument::InvalidArgument(const std::string& message)
    : Error{Code::kInvalidArgument, message, Outcome::kNotApplied} {}

UnsupportedError::UnsupportedError(const std::string& message)
    : Error{Code::kUnsupported, message, Outcome::kNotApplied} {}

ServerError::ServerError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kServer, message, prefix} {}

ServerError::ServerError(Code code, const std::string& message, std::string_view prefix)
    : Error{code, message, Outcome::kNotApplied, prefix} {}

NoGroupError::NoGroupError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kNoGroup, message, prefix} {}

WrongTypeError::WrongTypeError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kWrongType, message, prefix} {}

ReadOnlyError::ReadOnlyError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kReadOnly, message, prefix} {}

OutOfMemoryError::OutOfMemoryError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kOutOfMemory, message, prefix} {}

AuthError::AuthError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kAuth, message, prefix} {}

PermissionError::PermissionError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kPermission, message, prefix} {}

LoadingError::LoadingError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kLoading, message, prefix} {}

ClusterError::ClusterError(const std::string& message, std::string_view prefix)
    : ServerError{Code::kCluster, message, prefix} {}

}  // namespace millrace
