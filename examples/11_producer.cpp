// Appending from many threads without waiting: entries are joined into batches, and each is
// answered.

#include <millrace/format.hpp>
#include <millrace/producer.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "server_uri.hpp"

using namespace millrace;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream readings{pool, "example:producer"};
  readings.delete_stream();

  std::atomic<std::uint64_t> appended = 0;
  Producer producer{readings};

  // A future, for those who want to know now.
  fmt::print("a future:    {}\n", producer.send({{"sensor", "first"}}).get());

  // A callback, on the producer's thread, for those who go on.
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> sensors;
  for (int sensor = 0; sensor < 4; ++sensor) {
    sensors.emplace_back([&producer, &appended, name = std::to_string(sensor)] {
      for (int i = 0; i < 5'000; ++i) {
        producer.send({{"sensor", name}, {"celsius", std::to_string(i % 40)}},
                      [&appended](const AddResult& result) {
                        if (result.id) ++appended;
                        // Else result.error->outcome() says whether it may be in the stream.
                      });
      }
    });
  }
  for (auto& sensor : sensors) sensor.join();
  if (!producer.flush(10s)) return 1;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;

  const ProducerStats stats = producer.stats();
  fmt::print("4 callers:   {} entries in {} batches, {:.0f} ms\n", appended.load(), stats.batches,
             seconds.count() * 1'000);
  return appended == 20'000 && readings.length() == 20'001 ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "11_producer: {}\n", error.what());
  return 1;
}
