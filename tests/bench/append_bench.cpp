// Appending: one at a time, in batches, and from many threads.

#include "bench/raw.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace millrace::bench {
namespace {

constexpr std::size_t kSingles = 10'000;
constexpr std::size_t kBatches = 1'000;
constexpr std::size_t kBatch = 100;

EventStream stream_at(Link link, const PoolOptions& pool = {}) {
  the_bench();
  return {ConnectionPool{the_bench().options(link), pool}, "appended"};
}

/// Each repetition begins with an empty stream, or the server would grow for as long as it runs.
void remove_appended() {
  Raw raw{Link::kUnix};
  raw.command({"UNLINK", "appended"});
}

void ping_with_hiredis(benchmark::State& state, Link link) {
  Raw raw{link};
  Meter meter;
  for (std::size_t i = 0; i < kSingles; ++i) raw.command({"PING"});
  meter.stop(state, kSingles);
}

void append_with_hiredis(benchmark::State& state, Link link, Size size) {
  remove_appended();
  Raw raw{link};
  const Raw::Args args = xadd("appended", fields_of(size));
  Meter meter;
  for (std::size_t i = 0; i < kSingles; ++i) raw.command(args);
  meter.stop(state, kSingles);
}

void append(benchmark::State& state, Link link, Size size) {
  remove_appended();
  const EventStream stream = stream_at(link);
  const OwnedFields& fields = fields_of(size);
  stream.add(fields);
  Meter meter;
  for (std::size_t i = 0; i < kSingles; ++i) stream.add(fields);
  meter.stop(state, kSingles);
}

void append_batches_with_hiredis(benchmark::State& state, Link link, Size size) {
  remove_appended();
  Raw raw{link};
  const Raw::Args args = xadd("appended", fields_of(size));
  Meter meter;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    for (std::size_t i = 0; i < kBatch; ++i) raw.append(args);
    for (std::size_t i = 0; i < kBatch; ++i) raw.reply();
  }
  meter.stop(state, kBatches * kBatch);
}

void append_batches(benchmark::State& state, Link link, Size size) {
  remove_appended();
  const EventStream stream = stream_at(link);
  const std::vector<OwnedFields> batch(kBatch, fields_of(size));
  stream.add_batch(batch);
  Meter meter;
  for (std::size_t i = 0; i < kBatches; ++i) benchmark::DoNotOptimize(stream.add_batch(batch));
  meter.stop(state, kBatches * kBatch);
}

/// What the server's own program reaches with the same commands. It has the clients' processors.
void append_batches_with_redis_benchmark(benchmark::State& state, Link link, Size size) {
  remove_appended();
  const ConnectionOptions options = the_bench().options(link);
  std::string command = "redis-benchmark --csv -P 100 -c 1 -n " + std::to_string(kBatches * kBatch);
  command += link == Link::kUnix ? " -s " + options.unix_socket
                                 : " -h 127.0.0.1 -p " + std::to_string(options.port);
  for (const std::string_view arg : xadd("appended", fields_of(size))) {
    command += " '" + std::string{arg} + "'";
  }
  Meter meter;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe{::popen(command.c_str(), "r"), ::pclose};
  std::array<char, 4096> line{};
  double rate = 0;
  while (pipe && std::fgets(line.data(), static_cast<int>(line.size()), pipe.get()) != nullptr) {
    // "XADD ...","123456.78",...: the second column is the rate.
    const std::string text{line.data()};
    const std::size_t comma = text.find("\",\"");
    if (comma == std::string::npos || text.starts_with("\"test\"")) continue;
    rate = std::strtod(text.c_str() + comma + 3, nullptr);
  }
  meter.stop(state, kBatches * kBatch);
  if (rate <= 0) {
    state.SkipWithError("there is no redis-benchmark here");
    return;
  }
  state.counters["rate"] = rate;  // without the start of the program
}

/// `work` in so many threads at once. All have made their connections when it begins.
template <typename Work>
void in_threads(benchmark::State& state, std::size_t threads, std::size_t items, Work&& work) {
  Meter meter;
  {
    std::vector<std::jthread> running;
    for (std::size_t i = 0; i < threads; ++i) running.emplace_back([&work, i] { work(i); });
  }
  meter.stop(state, items);
}

std::size_t appends_of_each(std::size_t threads) { return 20'000 / threads; }

void append_from_threads_with_hiredis(benchmark::State& state, Link link, std::size_t threads) {
  remove_appended();
  std::vector<Raw> connections;
  for (std::size_t i = 0; i < threads; ++i) connections.emplace_back(link);
  const Raw::Args args = xadd("appended", fields_of(Size::kSmall));
  const std::size_t each = appends_of_each(threads);
  in_threads(state, threads, threads * each, [&](std::size_t mine) {
    for (std::size_t i = 0; i < each; ++i) connections[mine].command(args);
  });
}

void append_from_threads(benchmark::State& state, Link link, std::size_t threads) {
  remove_appended();
  const EventStream stream = stream_at(link);
  const std::size_t each = appends_of_each(threads);
  in_threads(state, threads, threads * each, [&](std::size_t) {
    for (std::size_t i = 0; i < each; ++i) stream.add(fields_of(Size::kSmall));
  });
}

}  // namespace

void add_append_benchmarks() {
  for (const Link link : {Link::kUnix, Link::kTcp}) {
    const std::string at = std::string{"/"} + name_of(link);
    add_benchmark("W1/hiredis_ping" + at, [=](auto& state) { ping_with_hiredis(state, link); });
    for (const Size size : {Size::kSmall, Size::kBig}) {
      const std::string of = at + "/" + name_of(size);
      add_benchmark("W1/hiredis" + of,
                    [=](auto& state) { append_with_hiredis(state, link, size); });
      add_benchmark("W1/add" + of, [=](auto& state) { append(state, link, size); });
      add_benchmark("W2/redis-benchmark" + of,
                    [=](auto& state) { append_batches_with_redis_benchmark(state, link, size); });
      add_benchmark("W2/hiredis" + of,
                    [=](auto& state) { append_batches_with_hiredis(state, link, size); });
      add_benchmark("W2/add_batch" + of, [=](auto& state) { append_batches(state, link, size); });
    }
    for (const std::size_t threads : {1U, 4U, 16U}) {
      const std::string of = at + "/" + std::to_string(threads);
      add_benchmark("W6/hiredis" + of,
                    [=](auto& state) { append_from_threads_with_hiredis(state, link, threads); });
      add_benchmark("W6/pool" + of,
                    [=](auto& state) { append_from_threads(state, link, threads); });
    }
  }
}

}  // namespace millrace::bench
