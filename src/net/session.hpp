#pragma once

#include <millrace/connection.hpp>

#include "net/wire_connection.hpp"

#include <stop_token>

namespace millrace::detail {

using Credentials = ConnectionOptions::Credentials;

/// What a new connection signs in with: the options' own, or what their function says now. Throws
/// ConnectError if that throws or makes no sense.
Credentials credentials_of(const ConnectionOptions& options);

/// Signs in and gives the session its protocol, name and database, in one round trip, on a
/// connection that has said nothing yet. A server that knows no RESP3 is spoken to in RESP2.
///
/// Throws the server's refusal (AuthError, LoadingError, …), ConnectError, or Interrupted.
void set_up_session(WireConnection& connection, const ConnectionOptions& options,
                    const Credentials& credentials, TimePoint deadline, std::stop_token stop);

}  // namespace millrace::detail
