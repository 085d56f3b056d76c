// From an append to its handler, at a rate that nothing has to hurry for. The load is open: an
// event is due by the clock, whatever became of the one before it, and its latency counts from when
// it was due. So what is slow is slow for all that had to wait behind it.

#include "bench/raw.hpp"

#include <millrace/consumer_worker.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace millrace::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::size_t kEvents = 1'000;
constexpr std::chrono::microseconds kEvery{2'000};

/// Nanoseconds of the clock, as text: what an entry says about when it was due.
std::string text_of(Steady::time_point time) {
  return std::to_string(time.time_since_epoch().count());
}

/// How long each event took, in the order of their ends. For one thread.
class Latencies {
 public:
  Latencies() { microseconds_.reserve(kEvents); }

  void add(std::string_view due) {
    Steady::rep count = 0;
    std::from_chars(due.data(), due.data() + due.size(), count);
    const auto took = Steady::now() - Steady::time_point{Steady::duration{count}};
    microseconds_.push_back(std::chrono::duration<double, std::micro>(took).count());
  }

  std::size_t size() const noexcept { return microseconds_.size(); }

  void report(benchmark::State& state) {
    std::sort(microseconds_.begin(), microseconds_.end());
    const auto at = [&](double part) {
      const auto index = static_cast<std::size_t>(part * static_cast<double>(size()));
      return microseconds_[std::min(index, size() - 1)];
    };
    state.counters["p50_us"] = at(0.5);
    state.counters["p99_us"] = at(0.99);
    state.counters["p999_us"] = at(0.999);
  }

 private:
  std::vector<double> microseconds_;
};

/// Calls `append` with the time at which each event is due, when it is.
template <typename Append>
void offer_load(Append&& append) {
  const Steady::time_point start = Steady::now();
  for (std::size_t i = 1; i <= kEvents; ++i) {
    const Steady::time_point due = start + i * kEvery;
    std::this_thread::sleep_until(due);
    append(text_of(due));
  }
}

std::string new_stream() {
  Raw raw{Link::kUnix};
  raw.command({"UNLINK", "latency"});
  raw.command({"XGROUP", "CREATE", "latency", "bench", "0", "MKSTREAM"});
  return "latency";
}

void with_hiredis(benchmark::State& state, Link link) {
  const std::string key = new_stream();
  Latencies latencies;
  Meter meter;
  std::jthread reader{[&] {
    Raw raw{link};
    while (latencies.size() < kEvents) {
      const RawReply reply = raw.command({"XREADGROUP", "GROUP", "bench", "bench", "COUNT", "10",
                                          "BLOCK", "1000", "STREAMS", key, ">"});
      const redisReply* batch = entries_of(reply);
      if (batch == nullptr) continue;
      Raw::Args ack{"XACK", key, "bench"};
      for (std::size_t i = 0; i < batch->elements; ++i) {
        const redisReply& entry = *batch->element[i];
        const redisReply& due = *entry.element[1]->element[1];
        latencies.add({due.str, due.len});
        ack.emplace_back(entry.element[0]->str, entry.element[0]->len);
      }
      raw.command(ack);
    }
  }};
  Raw raw{link};
  offer_load([&](const std::string& due) { raw.command({"XADD", key, "*", "due", due}); });
  reader.join();
  meter.stop(state, kEvents);
  latencies.report(state);
}

void with_a_worker(benchmark::State& state, Link link) {
  const EventStream stream{ConnectionPool{the_bench().options(link)}, new_stream()};
  Latencies latencies;
  std::atomic<bool> has_all = false;
  ConsumerWorker worker{stream,
                        {.group = "bench", .group_start = GroupStart::beginning()},
                        [&](const Delivery& delivery) {
                          latencies.add(delivery.entry.at("due"));
                          if (latencies.size() < kEvents) return;
                          has_all = true;
                          has_all.notify_one();
                        }};
  worker.start();
  if (!worker.wait_ready(std::chrono::seconds{10})) {
    state.SkipWithError("the worker does not read");
    return;
  }
  Meter meter;
  offer_load([&](const std::string& due) { stream.add({{"due", due}}); });
  has_all.wait(false);
  meter.stop(state, kEvents);
  worker.stop();
  latencies.report(state);
}

}  // namespace

void add_latency_benchmarks() {
  for (const Link link : {Link::kUnix, Link::kTcp}) {
    const std::string at = std::string{"/"} + name_of(link);
    add_benchmark("W7/hiredis" + at, [=](auto& state) { with_hiredis(state, link); });
    add_benchmark("W7/worker" + at, [=](auto& state) { with_a_worker(state, link); });
  }
}

}  // namespace millrace::bench
