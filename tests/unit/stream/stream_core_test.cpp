#include <millrace/error.hpp>
#include <millrace/event_stream.hpp>

#include "support/scripted_server.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace {
namespace {

using test::Peer;
using test::ScriptedServer;

/// What `call` throws at a reply that makes no sense.
template <typename Call>
std::string surprise_of(const ScriptedServer& server, Call call) {
  const ConnectionPool pool{{.unix_socket = server.path(),
                             .connect_timeout = test::kGenerous,
                             .command_timeout = test::kGenerous}};
  try {
    call(EventStream{pool, "s"});
  } catch (const ProtocolError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(StreamCore, NamesCommandKeyAndServerOfAReplyThatMakesNoSense) {
  ScriptedServer server{[](Peer& peer) {
                          peer.expect_client_id();
                          peer.read();
                          peer.send("+OK\r\n");
                          peer.drain();
                        },
                        ScriptedServer::Kind::kUnix};
  const auto place = " on 's' at " + server.path() + ": ";
  EXPECT_EQ(surprise_of(server, [](const EventStream& s) { s.length(); }),
            "XLEN" + place + "a count is a status, not a number of 0 or more");
  EXPECT_EQ(surprise_of(server, [](const EventStream& s) { s.replay(); }),
            "XRANGE" + place + "a list of entries is a status, not a list");
  const std::string added = "XADD" + place + "the reply to XADD is a status, not a stream id";
  EXPECT_EQ(surprise_of(server, [](const EventStream& s) { s.add({{"f", "v"}}); }), added);
  EXPECT_EQ(surprise_of(server,
                        [](const EventStream& s) {
                          s.add_batch(std::vector<OwnedFields>{{{"f", "v"}}})[0].error->raise();
                        }),
            added);
}

TEST(StreamCore, TakesNullForAnIdOnlyWhereNoStreamMayBeMade) {
  ScriptedServer server{[](Peer& peer) {
                          peer.expect_client_id();
                          while (!peer.read().empty()) peer.send("$-1\r\n");
                        },
                        ScriptedServer::Kind::kUnix};
  const auto surprise =
      "XADD on 's' at " + server.path() + ": the reply is null, although the stream was to be made";
  EXPECT_EQ(surprise_of(server, [](const EventStream& s) { s.add({{"f", "v"}}); }), surprise);
  EXPECT_EQ(surprise_of(server,
                        [](const EventStream& s) {
                          s.produce("t", {{"f", "v"}});
                        }),
            surprise);
  EXPECT_EQ(surprise_of(server,
                        [](const EventStream& s) {
                          s.add({{"f", "v"}}, {.create_stream = false});
                        }),
            "nothing");
}

}  // namespace
}  // namespace millrace
