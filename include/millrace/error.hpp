#pragma once

#include <millrace/export.hpp>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace {

/// What is known of a failed call's effect on the server.
enum class Outcome : std::uint8_t {
  kNotApplied,  ///< Nothing changed: not sent, or refused. Calling again cannot do it twice.
  kApplied,     ///< The change was made; only its result is lost or not as asked for.
  kUnknown,     ///< It was sent and no answer came: it may have been applied.
};

/// The root of everything that millrace throws.
///
/// An Error can be stored by value (`std::optional<Error>` in results) and thrown again as the
/// class that it was by raise(). Messages name the command, the key, the endpoint and what to do;
/// never a payload or a password.
class MILLRACE_EXPORT Error : public std::runtime_error {
 public:
  /// What to switch on: one value for each class below.
  enum class Code : std::uint8_t {
    kConnect,
    kIo,
    kTimeout,
    kPoolTimeout,
    kProtocol,
    kInvalidArgument,
    kUnsupported,
    kServer,
    kNoGroup,
    kWrongType,
    kReadOnly,
    kOutOfMemory,
    kAuth,
    kPermission,
    kLoading,
    kCluster,
  };

  Code code() const noexcept { return code_; }
  Outcome outcome() const noexcept { return outcome_; }

  /// True if the same call may succeed later without anybody mending the program or the server's
  /// configuration. Whether calling again may do the work twice is said by outcome().
  bool retryable() const noexcept;

  /// The first word of a server's error, such as `WRONGTYPE`: the only part that versions agree
  /// on. Empty unless the server said it. Lives as long as this object.
  std::string_view prefix() const noexcept { return {prefix_.data(), prefix_size_}; }

  /// Throws this error as the class that code() names, with message, prefix and outcome kept.
  [[noreturn]] void raise() const;

 protected:
  Error(Code code, const std::string& message, Outcome outcome, std::string_view prefix = {});

 private:
  // Inside the object, so that copying an Error cannot throw. The longest prefix known has 11.
  std::array<char, 24> prefix_{};
  std::uint8_t prefix_size_ = 0;
  Code code_;
  Outcome outcome_;
};

/// No connection could be made: refused, unreachable, not resolved, or not in `connect_timeout`.
class MILLRACE_EXPORT ConnectError : public Error {
 public:
  explicit ConnectError(const std::string& message);
};

/// A connection broke: closed by the peer, or a failed send or receive.
class MILLRACE_EXPORT IoError : public Error {
 public:
  explicit IoError(const std::string& message, Outcome outcome = Outcome::kUnknown);
};

/// No reply within the deadline. The connection has been closed.
class MILLRACE_EXPORT TimeoutError : public Error {
 public:
  explicit TimeoutError(const std::string& message, Outcome outcome = Outcome::kUnknown);
};

/// No connection of the pool became free within `wait_timeout`.
class MILLRACE_EXPORT PoolTimeout : public Error {
 public:
  explicit PoolTimeout(const std::string& message);
};

/// The peer said something that is not RESP, or not the reply that the command has.
class MILLRACE_EXPORT ProtocolError : public Error {
 public:
  explicit ProtocolError(const std::string& message, Outcome outcome = Outcome::kUnknown);
};

/// An argument or option that can never work. Thrown before anything is sent.
class MILLRACE_EXPORT InvalidArgument : public Error {
 public:
  explicit InvalidArgument(const std::string& message);
};

/// The server, or this build of the library, does not have what was asked for.
class MILLRACE_EXPORT UnsupportedError : public Error {
 public:
  explicit UnsupportedError(const std::string& message);
};

/// The server answered with an error. See prefix().
class MILLRACE_EXPORT ServerError : public Error {
 public:
  explicit ServerError(const std::string& message, std::string_view prefix = "ERR");

 protected:
  ServerError(Code code, const std::string& message, std::string_view prefix);
};

/// The group, or the whole stream, is not there: NOGROUP, or UNBLOCKED as Redis 7.0 says it.
class MILLRACE_EXPORT NoGroupError : public ServerError {
 public:
  explicit NoGroupError(const std::string& message, std::string_view prefix = "NOGROUP");
};

/// The key holds something that is no stream.
class MILLRACE_EXPORT WrongTypeError : public ServerError {
 public:
  explicit WrongTypeError(const std::string& message, std::string_view prefix = "WRONGTYPE");
};

/// The server is a replica, or was made one.
class MILLRACE_EXPORT ReadOnlyError : public ServerError {
 public:
  explicit ReadOnlyError(const std::string& message, std::string_view prefix = "READONLY");
};

/// The server is at its `maxmemory`. Reading, acknowledging and claiming still work.
class MILLRACE_EXPORT OutOfMemoryError : public ServerError {
 public:
  explicit OutOfMemoryError(const std::string& message, std::string_view prefix = "OOM");
};

/// NOAUTH or WRONGPASS: the credentials are missing or wrong.
class MILLRACE_EXPORT AuthError : public ServerError {
 public:
  explicit AuthError(const std::string& message, std::string_view prefix = "NOAUTH");
};

/// NOPERM: the user may not run this command, or not on this key.
class MILLRACE_EXPORT PermissionError : public ServerError {
 public:
  explicit PermissionError(const std::string& message, std::string_view prefix = "NOPERM");
};

/// The server is still loading its data set.
class MILLRACE_EXPORT LoadingError : public ServerError {
 public:
  explicit LoadingError(const std::string& message, std::string_view prefix = "LOADING");
};

/// MOVED, ASK, TRYAGAIN, CLUSTERDOWN or CROSSSLOT.
class MILLRACE_EXPORT ClusterError : public ServerError {
 public:
  explicit ClusterError(const std::string& message, std::string_view prefix = "CLUSTERDOWN");
};

}  // namespace millrace
