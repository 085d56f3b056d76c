// History: a stream keeps its entries after they are read, so they can be read again, by anybody,
// from anywhere, without a group.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "server_uri.hpp"

using namespace millrace;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream account{pool, "example:replay"};
  account.delete_stream();

  std::vector<OwnedFields> bookings;
  for (int i = 1; i <= 2'500; ++i) {
    bookings.push_back({{"owner", i % 3 == 0 ? "ann" : "bob"}, {"cents", std::to_string(i)}});
  }
  const auto added = account.add_batch(bookings);
  const StreamId third = added[2].id.value();

  // All of it, however long: pages of 1,000 are read as the loop gets there.
  std::map<std::string, long> cents;
  for (const auto& entry : account.replay_all()) {
    cents[std::string{entry.at("owner")}] += std::stol(std::string{entry.at("cents")});
  }
  for (const auto& [owner, sum] : cents) fmt::print("{} has {} cents\n", owner, sum);

  // A part: both ends count, unless they say otherwise.
  fmt::print("up to the third entry:   {}\n", account.replay({}, third).size());
  fmt::print("before the third entry:  {}\n", account.replay({}, RangeEnd::before(third)).size());
  fmt::print("the 5 after the third:  ");
  for (const auto& entry : account.replay(RangeStart::after(third), {}, 5)) {
    fmt::print(" {}", entry.at("cents"));
  }

  fmt::print("\nthe newest 3, backwards:");
  for (const auto& entry : account.tail(3)) fmt::print(" {}", entry.at("cents"));
  fmt::print("\n");
  return cents["ann"] + cents["bob"] == 2'500 * 2'501 / 2 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "06_replay: {}\n", error.what());
  return 1;
}
