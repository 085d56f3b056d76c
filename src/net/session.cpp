#include "net/session.hpp"

#include <millrace/error.hpp>

#include "core/printable.hpp"
#include "protocol/server_error.hpp"

#include <fmt/format.h>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

enum class Step : std::uint8_t { kHello, kAuth, kSetName, kSelect, kClientId };

std::string_view name_of(Step step) {
  switch (step) {
    case Step::kHello:
      return "HELLO";
    case Step::kAuth:
      return "AUTH";
    case Step::kSetName:
      return "CLIENT SETNAME";
    case Step::kSelect:
      return "SELECT";
    case Step::kClientId:
      break;
  }
  return "CLIENT ID";
}

std::string_view user_of(const Credentials& credentials) {
  return credentials.username.empty() ? std::string_view{"default"} : credentials.username;
}

/// One attempt at the set-up, in one protocol.
class SetUp {
 public:
  SetUp(WireConnection& connection, const ConnectionOptions& options,
        const Credentials& credentials, int resp_version)
      : connection_{connection}, options_{options}, credentials_{credentials} {
    if (resp_version == 3) {
      steps_.push_back(Step::kHello);
    } else if (!credentials.password.empty()) {
      steps_.push_back(Step::kAuth);
    }
    if (!options.client_name.empty()) steps_.push_back(Step::kSetName);
    if (options.database != 0) steps_.push_back(Step::kSelect);
    steps_.push_back(Step::kClientId);
  }

  /// False if the server does not know the protocol that was asked for.
  bool run(const CallSpec& spec) {
    const auto result = connection_.pipeline(
        spec, [this](RequestBuffer& request) { write(request); },
        [this](std::size_t index, Reply reply) { take(steps_[index], reply.root()); });
    if (protocol_unknown_ && !result.error) return false;
    if (refusal_) refusal_->raise();
    if (result.error) give_up(*result.error);
    return true;
  }

 private:
  void write(RequestBuffer& request) const {
    for (const Step step : steps_) write(request, step);
  }

  void write(RequestBuffer& request, Step step) const {
    switch (step) {
      case Step::kHello:
        if (credentials_.password.empty()) {
          request.command("HELLO", 2).arg("3");
        } else {
          request.command("HELLO", 5)
              .arg("3")
              .arg("AUTH")
              .arg(user_of(credentials_))
              .arg(credentials_.password);
        }
        break;
      case Step::kAuth:
        if (credentials_.username.empty()) {
          request.command("AUTH", 2).arg(credentials_.password);
        } else {
          request.command("AUTH", 3).arg(credentials_.username).arg(credentials_.password);
        }
        break;
      case Step::kSetName:
        request.command("CLIENT", 3).arg("SETNAME").arg(options_.client_name);
        break;
      case Step::kSelect:
        request.command("SELECT", 2).arg(std::uint64_t{options_.database});
        break;
      case Step::kClientId:
        request.command("CLIENT", 2).arg("ID");
        break;
    }
  }

  void take(Step step, ReplyView reply) {
    if (!reply.is_error()) {
      if (step == Step::kClientId && reply.is_integer()) {
        connection_.set_client_id(static_cast<std::uint64_t>(reply.integer()));
      }
      return;
    }
    const auto error = server_error(
        reply.text(), {.command = name_of(step), .key = {}, .endpoint = connection_.endpoint()});
    const bool unknown_command = reply.text().starts_with("ERR unknown");
    if (step == Step::kHello && (error.prefix() == "NOPROTO" || unknown_command)) {
      protocol_unknown_ = true;
      return;
    }
    const bool is_extra = step == Step::kSetName || step == Step::kClientId;
    if (is_extra && (error.prefix() == "NOPERM" || unknown_command)) return;
    // What follows a refusal is its echo: without AUTH, everything is refused.
    if (!refusal_) refusal_ = classify(step, reply.text(), error);
  }

  Error classify(Step step, std::string_view text, const Error& error) const {
    // Said in place of any reply; the server then closes.
    if (text.starts_with("ERR max number of clients"))
      return ConnectError{message(printable(text))};
    // What a server without a password answers to one.
    const bool signs_in = step == Step::kAuth || step == Step::kHello;
    if (signs_in && error.prefix() == "ERR") return AuthError{error.what(), error.prefix()};
    return error;
  }

  [[noreturn]] void give_up(const Error& broken) const {
    if (broken.code() == Error::Code::kProtocol) {
      with_outcome(broken, Outcome::kNotApplied).raise();  // of the user's call, nothing was sent
    }
    throw ConnectError{
        message(broken.code() == Error::Code::kTimeout
                    ? fmt::format("the server accepted the connection, but did not answer in time; "
                                  "connect_timeout is {} ms",
                                  options_.connect_timeout.count())
                    : "the server closed the connection before it had answered")};
  }

  std::string message(std::string_view why) const {
    return fmt::format("cannot connect to {}: {}", connection_.endpoint(), why);
  }

  WireConnection& connection_;
  const ConnectionOptions& options_;
  const Credentials& credentials_;
  std::vector<Step> steps_;
  bool protocol_unknown_ = false;
  std::optional<Error> refusal_;
};

}  // namespace

Credentials credentials_of(const ConnectionOptions& options) {
  if (!options.credentials) return {.username = options.username, .password = options.password};
  Credentials credentials;
  try {
    credentials = options.credentials();
  } catch (const std::exception& error) {
    throw ConnectError{
        fmt::format("the function `credentials` threw: {}", printable(error.what()))};
  } catch (...) {
    throw ConnectError{"the function `credentials` threw something that is no std::exception"};
  }
  if (credentials.password.empty() && !credentials.username.empty()) {
    throw ConnectError{"the function `credentials` gave a username without a password"};
  }
  return credentials;
}

void set_up_session(WireConnection& connection, const ConnectionOptions& options,
                    const Credentials& credentials, TimePoint deadline, std::stop_token stop) {
  const CallSpec spec{.command = "set-up of a connection",
                      .key = {},
                      .stop = std::move(stop),
                      .deadline = deadline};
  if (SetUp{connection, options, credentials, options.resp_version}.run(spec)) return;
  SetUp{connection, options, credentials, 2}.run(spec);
}

}  // namespace millrace::detail
