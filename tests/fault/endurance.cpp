// endurance [--seconds N] [--rate N]: whether workers that run for long need more and more memory.
//
// Appends `rate` entries a second (5,000) for so many seconds (600) and has a group of workers
// handle them, all in this process, against a server of its own. Ends with 1 if the resident memory
// at the end is more than 5 % above that after a tenth of the time, which is for warming up; with 2
// if the machine did not come to the rate, so that nothing is known.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>
#include <millrace/worker_group.hpp>

#include "support/throwaway_server.hpp"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using namespace millrace;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr double kMostGrowth = 1.05;
constexpr double kLeastRate = 0.9;
constexpr auto kTick = 10ms;

struct Options {
  std::size_t seconds = 600;
  std::size_t rate = 5'000;
};

std::optional<Options> parse(std::span<char* const> args) {
  Options options;
  for (std::size_t i = 0; i + 1 < args.size(); i += 2) {
    const std::string_view name = args[i], text = args[i + 1];
    std::size_t* const value = name == "--seconds" ? &options.seconds
                               : name == "--rate"  ? &options.rate
                                                   : nullptr;
    if (value == nullptr) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  }
  const bool are_pairs = args.size() % 2 == 0;
  return are_pairs && options.seconds >= 20 && options.rate >= 100 ? std::optional{options}
                                                                   : std::nullopt;
}

/// Resident memory of this process, in KiB.
std::size_t resident() {
  std::ifstream statm{"/proc/self/statm"};
  std::size_t all = 0, pages = 0;
  statm >> all >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

std::size_t median(std::vector<std::size_t> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// Appends at the rate until `end`; if the machine is too slow, as fast as it goes.
std::size_t append_until(Clock::time_point end, const EventStream& stream, std::size_t rate) {
  const OwnedFields fields{{"type", "endurance"}, {"payload", std::string(100, 'x')}};
  const std::vector<OwnedFields> some(rate * kTick.count() / 1'000, fields);
  std::size_t appended = 0;
  for (auto next = Clock::now(); next < end && Clock::now() < end; next += kTick) {
    std::this_thread::sleep_until(next);
    for (const AddResult& result : stream.add_batch(some)) {
      if (result.error) result.error->raise();
      ++appended;
    }
  }
  return appended;
}

/// One sample a second, some of which are printed.
std::vector<std::size_t> sample_until(Clock::time_point end, std::size_t print_every,
                                      const std::atomic<std::size_t>& handled) {
  std::vector<std::size_t> samples;
  for (auto next = Clock::now() + 1s; next <= end; next += 1s) {
    std::this_thread::sleep_until(next);
    samples.push_back(resident());
    if (samples.size() % print_every != 0) continue;
    fmt::print("{:>5} s {:>9} KiB {:>10} handled\n", samples.size(), samples.back(),
               handled.load());
    std::fflush(stdout);
  }
  return samples;
}

int run(const Options& options) {
  const test::ThrowawayServer server;
  const ConnectionPool pool{server.options()};
  // The server's memory is not the subject.
  const EventStream stream{pool, "endurance", {.retention = Trim::max_len(options.rate * 20)}};

  std::atomic<std::size_t> handled{0};
  WorkerGroup workers{stream,
                      {.group = "g", .group_start = GroupStart::beginning(), .prefetch = 64},
                      2,
                      [&handled](const Delivery&) { ++handled; }};
  workers.start();
  const auto end = Clock::now() + std::chrono::seconds{options.seconds};
  std::size_t appended = 0;
  std::exception_ptr failure;
  std::thread appender{[&] {
    try {
      appended = append_until(end, stream, options.rate);
    } catch (...) {
      failure = std::current_exception();
    }
  }};
  const auto samples = sample_until(end, std::max<std::size_t>(options.seconds / 30, 1), handled);
  appender.join();
  if (failure) std::rethrow_exception(failure);
  const auto give_up = Clock::now() + 30s;
  while (handled < appended && Clock::now() < give_up) std::this_thread::sleep_for(kTick);
  workers.stop();

  const std::size_t tenth = options.seconds / 10;
  const std::span all{samples};
  const auto window = [&](std::size_t from) {
    const auto some = all.subspan(from, tenth);
    return median({some.begin(), some.end()});
  };
  const std::size_t before = window(tenth), after = window(all.size() - tenth);
  const double growth = static_cast<double>(after) / static_cast<double>(before);
  fmt::print("{} entries appended, {} handled, {} a second\n", appended, handled.load(),
             handled / options.seconds);
  fmt::print("{} KiB after {} s, {} KiB at the end: {:+.1f} %\n", before, tenth, after,
             (growth - 1) * 100);
  if (growth > kMostGrowth) return 1;
  const double least = static_cast<double>(options.rate * options.seconds) * kLeastRate;
  if (static_cast<double>(handled) < least || handled < appended) {
    fmt::print("that was not the load: nothing is known\n");
    return 2;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const auto options = parse(std::span{argv, static_cast<std::size_t>(argc)}.subspan(1));
  if (!options) {
    fmt::print(stderr, "usage: {} [--seconds N (20 or more)] [--rate N (100 or more)]\n", argv[0]);
    return 64;
  }
  return run(*options);
} catch (const std::exception& error) {
  fmt::print(stderr, "endurance: {}\n", error.what());
  return 3;
}
