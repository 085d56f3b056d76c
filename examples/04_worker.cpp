// A ConsumerWorker: hand over a function, and it is called for each entry until it has succeeded.

#include <millrace/consumer_worker.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "server_uri.hpp"

using namespace millrace;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream orders{pool, "example:worker"};
  orders.delete_stream();
  for (int i = 1; i <= 5; ++i) orders.produce("order.placed", {{"number", std::to_string(i)}});

  const auto bill = [](const Delivery& delivery) {
    const auto number = delivery.entry.at("number");
    if (number == "3" && delivery.attempt < 3) {
      fmt::print("order {}: start {} fails\n", number, delivery.attempt);
      throw std::runtime_error{"the bank does not answer"};
    }
    fmt::print("order {}: billed at start {}\n", number, delivery.attempt);
  };

  const WorkerOptions options{.group = "billing",
                              .group_start = GroupStart::beginning(),
                              .min_idle = 400ms,  // a failed entry is handled again after that
                              .reap_every = 200ms};
  ConsumerWorker worker{orders, options, bill};
  worker.start();
  for (int i = 0; i < 400 && worker.stats().succeeded < 5; ++i) std::this_thread::sleep_for(50ms);
  worker.stop();

  const auto stats = worker.stats();
  fmt::print("{} succeeded, {} failed, {} pending\n", stats.succeeded, stats.failed,
             orders.pending("billing").count);
  return stats.succeeded == 5 && stats.failed == 2 && orders.pending("billing").count == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "04_worker: {}\n", error.what());
  return 1;
}
