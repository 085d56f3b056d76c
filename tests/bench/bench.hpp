#pragma once

#include "support/throwaway_server.hpp"

#include <millrace/event_stream.hpp>

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace millrace::bench {

/// How a client reaches the server.
enum class Link : std::uint8_t { kUnix, kTcp };

/// What one entry holds.
enum class Size : std::uint8_t {
  kSmall,  ///< 4 fields, 66 bytes.
  kBig,    ///< One field of 1 KiB.
};

inline const char* name_of(Link link) { return link == Link::kUnix ? "unix" : "tcp"; }
inline const char* name_of(Size size) { return size == Size::kSmall ? "small" : "big"; }

const OwnedFields& fields_of(Size size);

/// The throw-away server of this run. It has the machine's first processor for itself where there
/// is more than one, and the clients have the others.
class Bench {
 public:
  Bench();

  ConnectionOptions options(Link link) const;

  std::string server_name() const { return server_.version().to_string(); }

  /// Seconds of processor that the server has used so far.
  double server_seconds() const;

  /// The key of a stream of so many entries, which stays for the whole run. It has no
  /// group.
  std::string filled(Size size, std::size_t entries);

 private:
  test::ThrowawayServer server_;
  std::set<std::string> filled_;
};

Bench& the_bench();

/// Time, the client's processor, the server's, and allocations, of what one repetition measures.
class Meter {
 public:
  Meter();
  /// Ends the measurement, of `items` of them, and leaves its figures in `state`.
  void stop(benchmark::State& state, std::size_t items);

 private:
  std::chrono::steady_clock::time_point began_;
  double client_, server_;
  std::uint64_t allocations_;
};

/// Calls of malloc by this process so far, those of operator new among them.
std::uint64_t allocations() noexcept;

/// Registers what one repetition does. It measures itself, with a Meter.
void add_benchmark(const std::string& name, std::function<void(benchmark::State&)> run);

void add_append_benchmarks();
void add_reading_benchmarks();
void add_latency_benchmarks();

}  // namespace millrace::bench
