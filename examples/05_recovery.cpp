// Recovery: a consumer dies with entries in its hands, and a peer takes them over.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

#include "server_uri.hpp"

using namespace millrace;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream orders{pool, "example:recovery", {.claim_min_idle = 1s}};
  orders.delete_stream();
  orders.ensure_group("billing", GroupStart::beginning());
  for (int i = 1; i <= 6; ++i) orders.add({{"number", std::to_string(i)}});

  const auto lost = orders.consume("billing", "ann", {.count = 4});
  fmt::print("ann reads {} entries and is never seen again\n", lost.size());

  // Too early: nobody takes from a consumer that may still be at work.
  const auto early = orders.autoclaim("billing", "bob");
  fmt::print("bob may take {} entries at once\n", early.claimed.size());

  orders.erase({lost[0].id()});  // meanwhile, one of them is deleted
  std::this_thread::sleep_for(1100ms);
  const auto swept = orders.autoclaim("billing", "bob");
  for (const auto& entry : swept.claimed) fmt::print("bob bills order {}\n", entry.at("number"));
  for (const auto id : swept.deleted_ids) fmt::print("{} is no longer in the stream\n", id);
  orders.ack("billing", swept.claimed);
  if (!swept.complete()) return 1;  // a long pending list takes more calls, from next_cursor on

  // A consumer that is stopped in good order hands over what it has, without any waiting.
  orders.consume("billing", "bob");
  const auto moved = orders.handover_pending("billing", "bob", "cid").moved;
  fmt::print("bob hands {} entries to cid\n", moved);

  // Ann owns nothing now, so she can be removed. With pending entries she could not.
  fmt::print("ann is removed: {}\n", orders.remove_consumer("billing", "ann").removed);
  const auto cid = orders.remove_consumer("billing", "cid");
  fmt::print("cid is removed: {}, there are {} pending entries\n", cid.removed, cid.pending);
  return swept.claimed.size() == 3 && swept.deleted_ids.size() == 1 && cid.pending == 2 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "05_recovery: {}\n", error.what());
  return 1;
}
