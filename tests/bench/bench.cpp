#include "bench/bench.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

namespace millrace::bench {
namespace {

/// Runs this thread, and what it will start, on these processors.
void run_on(unsigned first, unsigned end) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (unsigned cpu = first; cpu < end; ++cpu) CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);  // on a machine that forbids it, all share all
}

test::ThrowawayServer start_server() {
  const unsigned cpus = std::thread::hardware_concurrency();
  if (cpus > 1) run_on(0, 1);
  struct BackOnTheOthers {
    unsigned cpus;
    ~BackOnTheOthers() {
      if (cpus > 1) run_on(1, cpus);
    }
  } const back{cpus};
  return test::ThrowawayServer{{.listen = test::ServerOptions::Listen::kTcp}};
}

double client_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

const OwnedFields& fields_of(Size size) {
  static const OwnedFields small{{"type", "order.placed"},
                                 {"id", "1234567890"},
                                 {"customer", "alice@example.org"},
                                 {"total", "99.90"}};
  static const OwnedFields big{{"payload", std::string(1024, 'x')}};
  return size == Size::kSmall ? small : big;
}

Bench::Bench() : server_{start_server()} {}

ConnectionOptions Bench::options(Link link) const {
  ConnectionOptions options = server_.options();
  if (link == Link::kUnix) options.unix_socket = server_.folder() / "socket";
  return options;
}

double Bench::server_seconds() const {
  std::ifstream file{fmt::format("/proc/{}/stat", server_.pid())};
  std::string text{std::istreambuf_iterator<char>{file}, {}};
  std::istringstream fields{text.substr(text.rfind(')') + 2)};
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0;
  double system = 0;
  if (!(fields >> user >> system)) throw std::runtime_error("the server is gone");
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

std::string Bench::filled(Size size, std::size_t entries) {
  std::string key = fmt::format("filled:{}:{}", name_of(size), entries);
  if (!filled_.insert(key).second) return key;
  const EventStream stream{ConnectionPool{options(Link::kUnix)}, key};
  const std::vector<OwnedFields> batch(1000, fields_of(size));
  for (std::size_t there = 0; there < entries; there += batch.size()) {
    for (const AddResult& result : stream.add_batch(batch)) {
      if (result.error) result.error->raise();
    }
  }
  return key;
}

Bench& the_bench() {
  static Bench bench;
  return bench;
}

Meter::Meter()
    : began_{std::chrono::steady_clock::now()},
      client_{client_seconds()},
      server_{the_bench().server_seconds()},
      allocations_{allocations()} {}

void Meter::stop(benchmark::State& state, std::size_t items) {
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  const auto count = static_cast<double>(items);
  state.SetIterationTime(seconds);
  state.counters["rate"] = count / seconds;
  state.counters["client_us"] = (client_seconds() - client_) * 1e6 / count;
  state.counters["busy"] = (the_bench().server_seconds() - server_) / seconds;
  state.counters["allocations"] = static_cast<double>(allocations() - allocations_) / count;
}

void add_benchmark(const std::string& name, std::function<void(benchmark::State&)> run) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [run = std::move(run)](benchmark::State& state) {
                                 for ([[maybe_unused]] auto once : state) run(state);
                               })
      ->Iterations(1)
      ->UseManualTime();
}

}  // namespace millrace::bench
