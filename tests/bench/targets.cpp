#include "bench/targets.hpp"

#include <fmt/ostream.h>

#include <ostream>
#include <string>

namespace millrace::bench {
namespace {

/// `benchmark` beside `other` by `counter`, or by itself where there is no other.
struct Target {
  const char* benchmark;
  const char* other;
  const char* counter;
  enum class Is : std::uint8_t { kAtLeast, kAtMost } is;
  double bound;
};

constexpr auto kAtLeast = Target::Is::kAtLeast;
constexpr auto kAtMost = Target::Is::kAtMost;

constexpr Target kTargets[] = {
    {"W1/add/unix/small", "W1/hiredis/unix/small", "rate", kAtLeast, 1.0},
    {"W1/add/unix/small", "W1/hiredis_ping/unix", "rate", kAtLeast, 0.70},
    {"W1/add/tcp/small", "W1/hiredis/tcp/small", "rate", kAtLeast, 1.0},
    {"W1/add/tcp/small", "W1/hiredis_ping/tcp", "rate", kAtLeast, 0.70},
    {"W2/add_batch/unix/small", "W2/redis-benchmark/unix/small", "rate", kAtLeast, 1.0},
    {"W2/add_batch/tcp/small", "W2/redis-benchmark/tcp/small", "rate", kAtLeast, 1.0},
    {"W3/worker/unix/small", "W3/hiredis/unix/small", "rate", kAtLeast, 1.5},
    {"W3/worker/tcp/small", "W3/hiredis/tcp/small", "rate", kAtLeast, 2.0},
    {"W3/worker/unix/small", "W3/hiredis_one_by_one/unix/small", "rate", kAtLeast, 20.0},
    {"W3/worker/unix/small", "W3/hiredis/unix/small", "client_us", kAtMost, 0.30},
    {"W3/consume/unix/small", "W3/hiredis/unix/small", "rate", kAtLeast, 1.05},
    {"W4/autoclaim/unix/small", "W4/hiredis/unix/small", "rate", kAtLeast, 1.15},
    {"W4/autoclaim/unix/small", nullptr, "busy", kAtLeast, 0.9},
    {"W5/replay_all/unix/small", "W5/hiredis/unix/small", "rate", kAtLeast, 2.0},
    {"W5/replay_all/unix/small", nullptr, "growth_mb", kAtMost, 1.0},
    {"W6/pool/unix/1", "W6/hiredis/unix/1", "rate", kAtLeast, 0.95},
    {"W6/pool/unix/4", "W6/hiredis/unix/4", "rate", kAtLeast, 0.95},
    {"W6/pool/unix/16", "W6/hiredis/unix/16", "rate", kAtLeast, 0.95},
    {"W7/worker/unix", "W7/hiredis/unix", "p50_us", kAtMost, 1.10},
    {"W7/worker/tcp", "W7/hiredis/tcp", "p50_us", kAtMost, 1.10},
};

}  // namespace

int judge(const Figures& figures, std::ostream& out) {
  int missed = 0;
  fmt::print(out, "{:<26} {:<34} {:<10} {:>8} {:>10}\n", "target", "beside", "by", "reached",
             "to reach");
  for (const Target& target : kTargets) {
    const auto reached = target.other == nullptr
                             ? figures.median(target.benchmark, target.counter)
                             : figures.ratio(target.benchmark, target.other, target.counter);
    if (!reached) continue;
    const bool at_least = target.is == kAtLeast;
    const bool holds = at_least ? *reached >= target.bound : *reached <= target.bound;
    if (!holds) ++missed;
    fmt::print(out, "{:<26} {:<34} {:<10} {:>8.2f} {:>2} {:>7.2f}{}\n", target.benchmark,
               target.other == nullptr ? "" : target.other, target.counter, *reached,
               at_least ? ">=" : "<=", target.bound, holds ? "" : "  MISSED");
  }
  return missed;
}

}  // namespace millrace::bench
