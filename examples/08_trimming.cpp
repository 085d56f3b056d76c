// Trimming: a stream grows until somebody trims it. By size or age it is cheap and looks at nobody;
// trim_safely() removes only what every group is done with.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "server_uri.hpp"

using namespace millrace;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream log{pool, "example:trim"};
  log.delete_stream();
  log.add_batch(std::vector<OwnedFields>(1'000, {{"line", "something happened"}}));

  // Approximate: whole nodes of the server's tree go, so a few more entries stay.
  const auto about = log.trim(Trim::max_len(450));
  fmt::print("keep about 450:     {} removed, {} left\n", about, log.length());

  const auto exact = log.trim(Trim::max_len(450).exactly());
  fmt::print("keep exactly 450:   {} removed, {} left\n", exact, log.length());

  const auto old = log.trim(Trim::max_age(24h));
  fmt::print("keep a day:         {} removed, {} left\n", old, log.length());

  // Two groups: one has done 100 entries, the other has read 70 and acknowledged 60 of them.
  log.ensure_group("fast", GroupStart::beginning());
  log.ensure_group("slow", GroupStart::beginning());
  log.ack("fast", log.consume("fast", "a", {.count = 100}));
  log.ack("slow", log.consume("slow", "a", {.count = 60}));
  log.consume("slow", "a", {.count = 10});

  const auto safe = log.trim_safely();
  fmt::print("what all are done with: {} removed, {} left\n", safe, log.length());

  // A stream can trim itself with each append; a cap like this may drop what nobody has read.
  const EventStream capped{pool, "example:trim", {.retention = Trim::max_len(100).exactly()}};
  capped.add({{"line", "one more"}});
  fmt::print("a cap of 100:       {} left\n", log.length());
  return exact > 0 && old == 0 && safe == 60 && log.length() == 100 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "08_trimming: {}\n", error.what());
  return 1;
}
