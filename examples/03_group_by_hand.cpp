// A consumer group, step by step: its consumers share the entries, and what they have not
// acknowledged stays pending. A ConsumerWorker does all of this by itself; see 04_worker.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include "server_uri.hpp"

using namespace millrace;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream orders{pool, "example:group"};
  orders.delete_stream();
  for (int i = 1; i <= 10; ++i) orders.add({{"number", std::to_string(i)}});

  orders.ensure_group("billing", GroupStart::beginning());

  // Each entry goes to one consumer of the group: the one that asks first.
  for (const auto* consumer : {"ann", "bob", "ann"}) {
    const auto batch = orders.consume("billing", consumer, {.count = 3, .block = 100ms});
    for (const auto& entry : batch) fmt::print("{} bills order {}\n", consumer, entry.at("number"));
    const bool crashes = batch.front().at("number") == "7";
    if (!crashes) orders.ack("billing", batch);
  }

  // What was delivered and not acknowledged is not lost: the group knows who has it.
  for (const auto& owner : orders.pending("billing").consumers) {
    fmt::print("{} has not acknowledged {} entries:", owner.name, owner.count);
    for (const auto& entry : orders.pending_entries("billing", {.consumer = owner.name})) {
      fmt::print(" {}", entry.id);
    }
    fmt::print("\n");
  }

  // Ann comes back under the same name and finds her own entries again.
  const auto again = orders.consume_own_pending("billing", "ann");
  fmt::print("ann bills {} orders again, from number {}\n", again.size(),
             again.front().at("number"));
  orders.ack("billing", again);

  const auto left = orders.consume("billing", "bob", {.block = 100ms});
  orders.ack("billing", left);
  fmt::print("bob bills the last {}; {} pending\n", left.size(), orders.pending("billing").count);
  return orders.pending("billing").count == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "03_group_by_hand: {}\n", error.what());
  return 1;
}
