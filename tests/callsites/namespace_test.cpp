/// A user's own names beside all of ours: nothing in the namespace collides.

#include <millrace/connection.hpp>
#include <millrace/consumer_worker.hpp>
#include <millrace/entry.hpp>
#include <millrace/error.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/fields.hpp>
#include <millrace/format.hpp>
#include <millrace/health.hpp>
#include <millrace/histogram.hpp>
#include <millrace/observer.hpp>
#include <millrace/producer.hpp>
#include <millrace/prometheus.hpp>
#include <millrace/stream_id.hpp>
#include <millrace/stream_info.hpp>
#include <millrace/stream_options.hpp>
#include <millrace/worker_group.hpp>
#include <millrace/worker_stats.hpp>

#include <gtest/gtest.h>

#include <chrono>

using namespace millrace;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

TEST(NamespaceCalls, AUsingDirectiveLeavesUsersTheirNames) {
  const auto start = Clock::now();
  const auto deadline = start + 1s;
  EXPECT_GT(deadline, start);

  const StreamOptions options{.claim_min_idle = 10s};
  EXPECT_EQ(options.claim_min_idle, 10'000ms);
}

}  // namespace
