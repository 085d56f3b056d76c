#include "support/stream_test.hpp"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

namespace millrace::test {
namespace {

constexpr std::size_t kThreads = 16;
constexpr std::size_t kCalls = 10'000;
constexpr std::size_t kConnections = 4;

/// What became of the entries that were appended, by the value that each of them carries.
struct Outcomes {
  std::map<std::string, StreamId> appended{};
  std::map<std::string, Outcome> failed{};
};

class PoolUnderLoad : public ServerTest {
 protected:
  ConnectionPool four_{server().options(),
                       {.max_connections = kConnections, .wait_timeout = kGenerous}};
  EventStream stream_{four_, "s"};
  std::atomic<std::size_t> done_ = 0;

  /// Appends kCalls entries from kThreads threads; calls `meanwhile` again and again until they are
  /// done.
  template <typename Meanwhile>
  Outcomes append_all(Meanwhile&& meanwhile) {
    Outcomes outcomes;
    std::mutex mutex;
    std::vector<std::thread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (std::size_t call = thread; call < kCalls; call += kThreads) {
          const std::string value = std::to_string(call);
          try {
            const auto id = stream_.add({{"n", value}});
            const std::lock_guard lock{mutex};
            outcomes.appended.emplace(value, id.value());
          } catch (const Error& error) {
            const std::lock_guard lock{mutex};
            outcomes.failed.emplace(value, error.outcome());
          }
          ++done_;
        }
      });
    }
    while (done_ < kCalls) meanwhile();
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  std::size_t clients() {
    return std::stoul(info_field(raw(), "clients", "connected_clients")) - 1;  // without raw()
  }
  std::size_t connections_received() {
    return std::stoul(info_field(raw(), "stats", "total_connections_received"));
  }
};

TEST_F(PoolUnderLoad, NeverHasMoreConnectionsThanItsBound) {
  const std::size_t before = connections_received();
  std::size_t most_open = 0;
  std::size_t most_clients = 0;
  std::size_t most_waiting = 0;

  const Outcomes outcomes = append_all([&] {
    const PoolStats stats = four_.stats();
    EXPECT_LE(stats.in_use, stats.open);
    most_open = std::max(most_open, stats.open);
    most_waiting = std::max(most_waiting, stats.waiting);
    most_clients = std::max(most_clients, clients());
  });

  EXPECT_TRUE(outcomes.failed.empty());
  EXPECT_EQ(outcomes.appended.size(), kCalls);
  EXPECT_EQ(stream_.length(), kCalls);
  EXPECT_LE(most_open, kConnections);
  EXPECT_LE(most_clients, kConnections);
  EXPECT_LE(most_waiting, kThreads);
  EXPECT_LE(connections_received() - before, kConnections);
  EXPECT_LE(four_.stats().created, kConnections);
  EXPECT_EQ(four_.stats().timeouts, 0U);
  EXPECT_EQ(four_.stats().in_use, 0U);
  EXPECT_EQ(four_.stats().waiting, 0U);
}

TEST_F(PoolUnderLoad, LosesAtMostTheCallsInFlightWhenEveryConnectionIsKilled) {
  std::size_t kills = 0;
  const Outcomes outcomes = append_all([&] {
    const std::size_t before = done_;
    raw()("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    ++kills;
    EXPECT_LE(four_.stats().open, kConnections);
    EXPECT_TRUE(wait_until([&] { return done_ >= std::min(before + 100, kCalls); }));
  });

  EXPECT_GE(kills, 10U);
  EXPECT_EQ(outcomes.appended.size() + outcomes.failed.size(), kCalls);
  EXPECT_LE(outcomes.failed.size(), kills * kConnections);

  std::map<std::string, StreamId> in_stream;
  for (const Entry& entry : stream_.replay_all()) {
    const bool first = in_stream.emplace(entry.at("n"), entry.id()).second;
    EXPECT_TRUE(first) << entry.at("n") << " was appended twice";
  }
  for (const auto& [value, id] : outcomes.appended) {
    EXPECT_EQ(in_stream.at(value), id) << value;
  }
  std::size_t unknown = 0;
  for (const auto& [value, outcome] : outcomes.failed) {
    EXPECT_NE(outcome, Outcome::kApplied) << value;
    if (outcome == Outcome::kUnknown) {
      ++unknown;
    } else {
      EXPECT_FALSE(in_stream.contains(value)) << value << " was said not to be applied";
    }
  }
  EXPECT_GE(stream_.length(), outcomes.appended.size());
  EXPECT_LE(stream_.length(), outcomes.appended.size() + unknown);
}

#ifdef __has_feature  // Clang's way to say it
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MILLRACE_MEMORY_IS_NOT_GIVEN_BACK
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MILLRACE_MEMORY_IS_NOT_GIVEN_BACK
#endif

#ifndef MILLRACE_MEMORY_IS_NOT_GIVEN_BACK

std::size_t resident_bytes() {
  std::ifstream statm{"/proc/self/statm"};
  std::size_t pages = 0;
  std::size_t resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(PoolUnderLoad, HoldsNoMemoryOfTheLargeEntriesThatWentThroughIt) {
  constexpr std::size_t kLarge = std::size_t{32} << 20;
  const std::string large(kLarge, 'x');
  four_.ping();
  const std::size_t before = resident_bytes();
  {
    std::vector<std::future<std::size_t>> threads;
    for (std::size_t i = 0; i < kConnections; ++i) {
      threads.push_back(std::async(std::launch::async, [&] {
        const auto id = stream_.add({{"f", large}}).value();
        return stream_.replay(id, id).begin()->at("f").size();
      }));
    }
    for (auto& thread : threads) EXPECT_EQ(thread.get(), kLarge);
  }
  ::malloc_trim(0);
  EXPECT_LT(resident_bytes(), before + kLarge);
}

#endif

}  // namespace
}  // namespace millrace::test
