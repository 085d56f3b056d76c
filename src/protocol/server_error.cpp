#include "protocol/server_error.hpp"

#include "core/printable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace millrace::detail {
namespace {

using Code = Error::Code;

/// What an error stands for, and what its reader can do about it.
struct Meaning {
  std::string_view prefix;
  Code code;
  std::string_view advice;
};

constexpr std::array kMeanings{
    Meaning{"NOGROUP", Code::kNoGroup, "ensure_group() makes the group and the stream"},
    Meaning{"WRONGTYPE", Code::kWrongType, "this key holds no stream: use another key"},
    Meaning{"READONLY", Code::kReadOnly, "this server is a replica: connect to its master"},
    Meaning{"OOM", Code::kOutOfMemory, "trim streams or raise the server's maxmemory"},
    Meaning{"NOAUTH", Code::kAuth, "give a password in ConnectionOptions"},
    Meaning{"WRONGPASS", Code::kAuth, "check username and password in ConnectionOptions"},
    Meaning{"NOPERM", Code::kPermission, "grant it to the user with ACL SETUSER"},
    Meaning{"LOADING", Code::kLoading, "try again when the server has loaded its data"},
    Meaning{"MOVED", Code::kCluster, "another node of the cluster has this key"},
    Meaning{"ASK", Code::kCluster, "this key is on its way to another node of the cluster"},
    Meaning{"TRYAGAIN", Code::kCluster, "keys are on their way to another node: try again"},
    Meaning{"CLUSTERDOWN", Code::kCluster, "try again when the cluster is whole"},
    Meaning{"CROSSSLOT", Code::kCluster, "keys of one command need the same {hash tag}"},
    Meaning{"BUSY", Code::kServer, "try again; SCRIPT KILL ends a script that hangs"},
    Meaning{"MISCONF", Code::kServer, "the server refuses writes until it can save: see its log"},
    Meaning{"NOREPLICAS", Code::kServer, "try again when enough replicas are connected"},
    Meaning{"MASTERDOWN", Code::kServer, "try again, or connect to the master"},
};

/// More than the longest error that a server has (MISCONF, 360 bytes).
constexpr std::size_t kLongestLine = 1'000;

std::string_view first_word(std::string_view line) { return line.substr(0, line.find(' ')); }

/// An error whose first word alone does not tell.
struct Text {
  std::string_view beginning;
  Meaning meaning;
};

constexpr std::string_view kTooOld =
    "this server is too old for it, or its administrator renamed it";

/// Texts as Redis 7.0 to 8.6 and Valkey 8.0 to 9.1 have them; a script adds ` script: <sha>, on …`
/// to what its commands answer.
constexpr std::array kTexts{
    // A blocked XREADGROUP, Redis 7.0 only; every other UNBLOCKED is about this client alone.
    Text{"UNBLOCKED the stream key no longer exists",
         {"UNBLOCKED", Code::kNoGroup, "ensure_group() makes the group and the stream"}},
    // XINFO and XSETID of a missing stream, and XGROUP of one.
    Text{"ERR no such key", {"ERR", Code::kNoGroup, "there is no such stream"}},
    Text{"ERR The XGROUP subcommand requires the key to exist",
         {"ERR", Code::kNoGroup, "there is no such stream"}},
    // What NOPERM becomes inside a script: first Redis 7.0, then the others.
    Text{"ERR The user executing the script can't",
         {"NOPERM", Code::kPermission, "grant it to the user with ACL SETUSER"}},
    Text{"ERR ACL failure in script",
         {"NOPERM", Code::kPermission, "grant it to the user with ACL SETUSER"}},
    // By itself, and in a script of Redis and of Valkey.
    Text{"ERR unknown command", {"ERR", Code::kServer, kTooOld}},
    Text{"ERR Unknown Redis command called from script", {"ERR", Code::kServer, kTooOld}},
    Text{"ERR Unknown command called from script", {"ERR", Code::kServer, kTooOld}},
};

Meaning meaning_of(std::string_view line) {
  const auto text = std::find_if(kTexts.begin(), kTexts.end(), [line](const Text& each) {
    return line.starts_with(each.beginning);
  });
  if (text != kTexts.end()) return text->meaning;
  const auto word = first_word(line);
  const auto known = std::find_if(kMeanings.begin(), kMeanings.end(),
                                  [word](const Meaning& each) { return each.prefix == word; });
  return known != kMeanings.end() ? *known : Meaning{word, Code::kServer, {}};
}

/// Without the arguments that an "unknown command" error quotes: they could be a payload or, from
/// AUTH and HELLO, a password.
std::string_view without_arguments(std::string_view line) {
  if (!line.starts_with("ERR unknown command")) return line;
  const auto comma = line.find(',');
  return line.substr(0, comma);
}

/// "XADD on 'orders' at 127.0.0.1:6379: ", as far as it is known.
std::string beginning_of_message(const ErrorContext& context) {
  std::string message{context.command};
  if (!context.key.empty()) message += fmt::format(" on '{}'", printable(context.key));
  if (!context.endpoint.empty()) message += fmt::format(" at {}", context.endpoint);
  if (!message.empty()) message += ": ";
  return message;
}

std::string message_of(std::string_view line, std::string_view advice,
                       const ErrorContext& context) {
  std::string message = beginning_of_message(context);
  message += printable(without_arguments(line), kLongestLine);
  if (!advice.empty()) message += fmt::format(" ({})", advice);
  return message;
}

/// Opens the constructor that every error shares.
class AnyError : public Error {
 public:
  AnyError(Code code, const std::string& message, Outcome outcome, std::string_view prefix)
      : Error{code, message, outcome, prefix} {}
};

}  // namespace

Error server_error(std::string_view line, const ErrorContext& context) {
  const Meaning meaning = meaning_of(line);
  return AnyError{meaning.code, message_of(line, meaning.advice, context), Outcome::kNotApplied,
                  meaning.prefix};
}

Error server_error(ReplyView reply, std::string_view command, std::string_view key) {
  return server_error(reply.text(), {.command = command, .key = key, .endpoint = reply.endpoint()});
}

ProtocolError in_context(const ProtocolError& error, const ErrorContext& context) {
  return ProtocolError{beginning_of_message(context) + error.what(), error.outcome()};
}

bool is_client_unblock(const Error& error) {
  // Every UNBLOCKED has the same first word; the others mean that something happened to the stream
  // or to the server.
  return error.prefix() == "UNBLOCKED" &&
         std::string_view{error.what()}.find("client unblocked via CLIENT UNBLOCK") !=
             std::string_view::npos;
}

std::string_view effect(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::kNotApplied:
      return "it was not sent whole and has not been applied";
    case Outcome::kApplied:
      return "a part of it has been applied before";
    case Outcome::kUnknown:
      break;
  }
  return "it was sent and may have been applied";
}

Error with_outcome(const Error& error, Outcome outcome) {
  std::string_view said = error.what();
  const auto former = effect(error.outcome());
  if (!said.ends_with(former)) return AnyError{error.code(), error.what(), outcome, error.prefix()};
  said.remove_suffix(former.size());
  return AnyError{error.code(), fmt::format("{}{}", said, effect(outcome)), outcome,
                  error.prefix()};
}

}  // namespace millrace::detail
