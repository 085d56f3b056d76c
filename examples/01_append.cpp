// Appending: what an entry is made of, who gives it its id, and what happens if that is you.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "server_uri.hpp"

using namespace millrace;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream orders{pool, "example:append"};
  orders.delete_stream();

  // An event has a type and a time of its own, before its payload.
  const auto placed = orders.produce("order.placed", {{"number", "4711"}, {"total", "9.90 €"}});
  fmt::print("an event:               {}\n", placed);

  // Below that an entry is just fields: a list, any range of pairs, or another entry.
  const std::map<std::string, std::string> address{{"city", "Zürich"}, {"zip", "8001"}};
  const auto moved = orders.add(address);
  fmt::print("a map:                  {}\n", moved.value());

  // An id of your own makes an append safe to repeat: the server takes it only once.
  const AddOptions exactly{.id = AddId::exactly(moved->next())};
  fmt::print("an id of my own:        {}\n", orders.add({{"number", "4712"}}, exactly).value());
  try {
    orders.add({{"number", "4712"}}, exactly);
    return 1;  // it must not be taken twice
  } catch (const ServerError& error) {
    fmt::print("the same id once more:  {}\n", error.what());
  }

  // Nothing is appended to a stream that nobody made, if you say so.
  const EventStream nobody{pool, "example:append:nobody"};
  const auto none = nobody.add({{"number", "1"}}, {.create_stream = false});
  fmt::print("without a stream:       {}\n", none ? "appended" : "nothing appended");

  for (const auto& entry : orders.replay()) {
    fmt::print("\n{}\n", entry.id());
    for (const auto& [name, value] : entry) fmt::print("  {} = {}\n", name, value);
  }
} catch (const std::exception& error) {
  fmt::print(stderr, "01_append: {}\n", error.what());
  return 1;
}
