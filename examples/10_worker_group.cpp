// A WorkerGroup: several workers of one consumer group, started and stopped as one.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>
#include <millrace/worker_group.hpp>

#include <atomic>
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
  const EventStream orders{pool, "example:worker-group"};
  orders.delete_stream();
  for (int i = 1; i <= 100; ++i) orders.produce("order.placed", {{"number", std::to_string(i)}});

  std::atomic<int> billed{0};
  const auto bill = [&billed](const Delivery&) {  // called by all of them at once
    std::this_thread::sleep_for(5ms);
    ++billed;
  };

  // biller-1 to biller-4, at each start.
  WorkerGroup billers{
      orders,
      {.group = "billing", .consumer = "biller", .group_start = GroupStart::beginning()},
      4,
      bill};
  billers.start();
  for (int i = 0; i < 400 && billed < 100; ++i) std::this_thread::sleep_for(50ms);
  if (const auto failure = billers.failure()) fmt::print("one has failed: {}\n", failure->what());
  const StopReport report = billers.stop(5s);  // one deadline for all

  for (std::size_t i = 0; i < billers.size(); ++i) {
    fmt::print("{} billed {} orders\n", billers[i].consumer(), billers[i].stats().succeeded);
  }
  fmt::print("{} in all, {} given back, {} pending\n", billers.stats().succeeded,
             report.released.size(), orders.pending("billing").count);
  return billed == 100 && orders.pending("billing").count == 0 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "10_worker_group: {}\n", error.what());
  return 1;
}
