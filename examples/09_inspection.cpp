// Looking at a stream, its groups, their consumers, and what they have not acknowledged.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include "server_uri.hpp"

using namespace millrace;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream orders{pool, "example:inspect"};
  orders.delete_stream();
  fmt::print("{} entries in a stream that is not there\n", orders.length());

  for (int i = 1; i <= 10; ++i) orders.add({{"number", std::to_string(i)}});
  orders.ensure_group("billing", GroupStart::beginning());
  orders.ensure_group("shipping", GroupStart::beginning());
  orders.ack("billing", orders.consume("billing", "ann", {.count = 4}));
  orders.consume("billing", "bob", {.count = 3});

  const auto info = orders.info();
  fmt::print("{} entries, {} groups, last id {}, first entry {}\n", info.length, info.groups,
             info.last_generated_id, info.first_entry.value().id);

  for (const auto& group : orders.groups()) {
    // The lag is the server's reckoning, and it does not always know.
    fmt::print("group {}: {} pending, ", group.name, group.pending);
    fmt::print("{} not yet delivered\n", group.lag ? std::to_string(*group.lag) : "perhaps more");

    for (const auto& consumer : orders.consumers(group.name)) {
      fmt::print("  {}: {} pending, idle for {} ms\n", consumer.name, consumer.pending,
                 consumer.idle.count());
    }
    for (const auto& entry : orders.pending_entries(group.name)) {
      fmt::print("  {}: with {}, delivered {} time(s)\n", entry.id, entry.consumer,
                 entry.deliveries);
    }
  }

  const auto stats = pool.stats();
  fmt::print("the pool has {} connection(s), and made {} in all\n", stats.open, stats.created);
  return info.length == 10 && orders.pending("billing").count == 3 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "09_inspection: {}\n", error.what());
  return 1;
}
