// Appending many entries in one round trip, with a result for each.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "server_uri.hpp"

using namespace millrace;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream readings{pool, "example:batch"};
  readings.delete_stream();

  std::vector<Event> events;
  for (int i = 0; i < 5'000; ++i) {
    events.push_back({"reading.taken", {{"sensor", "t1"}, {"celsius", std::to_string(i % 40)}}});
  }
  // `type` is a field that every event has already, so this one is refused, and it alone.
  events.push_back({"reading.taken", {{"type", "mine"}}});

  const auto start = std::chrono::steady_clock::now();
  const auto results = readings.produce_batch(events);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  std::size_t appended = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].id) {
      ++appended;
    } else {
      fmt::print("event {} was not appended: {}\n", i, results[i].error->what());
    }
  }
  fmt::print("{} of {} events in {:.0f} ms, {} to {}\n", appended, events.size(),
             seconds.count() * 1'000, results[0].id.value(), results[appended - 1].id.value());
  return appended == readings.length() && appended == 5'000 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "02_batch: {}\n", error.what());
  return 1;
}
