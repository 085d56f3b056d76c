#pragma once

#include <millrace/error.hpp>

#include "core/clock.hpp"
#include "core/function_ref.hpp"
#include "protocol/reply.hpp"
#include "protocol/request.hpp"
#include "protocol/script.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>

namespace millrace::detail {

/// Whether a call may be sent again after its reply was lost.
enum class Repeat : bool {
  kNever,
  kSafe,  ///< Repeating it cannot change the result: reads without side effects.
};

/// What a call is, for deadlines, routing, messages and repetition.
struct CallSpec {
  std::string_view command{};  ///< As messages show it: "XADD", "XGROUP CREATE".
  std::string_view key{};      ///< Decides which server; shown in messages.
  Repeat repeat = Repeat::kNever;
  Milliseconds block{0};   ///< Comes on top of the command time-out.
  std::stop_token stop{};  ///< Ends the wait for a reply with Interrupted.
  /// The same, but first the server is told, and what it says until it has closed the connection is
  /// taken. So when the call ends, what was sent does nothing more there.
  std::stop_token hang_up{};
  /// In place of command time-out and block, if given: a repetition shares the first try's.
  std::optional<TimePoint> deadline{};
};

/// Thrown where `CallSpec::stop` ended the wait. The connection is closed if anything was sent: its
/// late reply must never answer another call. Not an Error: those who pass a token catch it.
struct Interrupted {};

/// Writes the request. Called again, into an empty buffer, if the call is repeated.
using WriteRequest = FunctionRef<void(RequestBuffer&)>;

/// Writes what more there is to send, if anything, into a buffer that may hold what was sent
/// before.
using WriteMore = FunctionRef<void(RequestBuffer&)>;

/// Takes the reply to command `index` of a pipeline; it may be an error reply.
using TakeReply = FunctionRef<void(std::size_t index, Reply&& reply)>;

/// What became of a pipeline.
struct PipelineResult {
  std::size_t replies = 0;       ///< Replies taken, from the first command on.
  std::size_t sent = 0;          ///< Commands of which every byte was sent: they may have run.
  std::optional<Error> error{};  ///< Why the rest has no reply.
};

class Wakeup;

/// One connection to one server, set up and ready. For one thread at a time.
///
/// Invariant: either no reply is outstanding, or the connection is closed. Whatever breaks that
/// (a time-out, an interruption, a protocol error) closes it, so that a late reply cannot answer
/// the next call.
class Connection {
 public:
  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  virtual ~Connection() = default;

  /// One command, one reply. Throws the error that the server answered, as its class, or what broke
  /// the connection.
  virtual Reply call(const CallSpec& spec, WriteRequest write) = 0;

  /// Several commands in one write. Replies come in order, error replies among them, as soon as
  /// they arrive. Does not throw for a broken connection (see the result), but for `write` and
  /// Interrupted.
  virtual PipelineResult pipeline(const CallSpec& spec, WriteRequest write, TakeReply take) = 0;

  /// A pipeline without an end of its own: `more` is asked for commands whenever all that was
  /// written has been sent: at first, after replies have come, and after `wakeup` was signalled.
  /// Over when every command has its reply and `more` writes nothing. Each command has the command
  /// time-out from when it was written. As pipeline(), but a stop is in the result, as an IoError
  /// that says what was sent.
  virtual PipelineResult converse(const CallSpec& spec, WriteMore more, TakeReply take,
                                  const Wakeup& wakeup) = 0;

  /// Runs a script by EVALSHA, and by EVAL where the server does not have it yet.
  Reply eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
             std::span<const std::string_view> args);

  /// False once it is closed.
  virtual bool is_open() const noexcept = 0;

  /// False if the peer has closed it or sent what nobody asked for: not to be used again. One look,
  /// no waiting.
  virtual bool is_quiet() noexcept { return is_open(); }

  /// The server's number for this connection, for CLIENT UNBLOCK; asked for at the set-up. 0 if the
  /// user may not ask.
  virtual std::uint64_t client_id() const noexcept = 0;

  /// `host:port`, or the socket's path, for messages.
  virtual std::string_view endpoint() const noexcept = 0;
};

}  // namespace millrace::detail
