#include "core/histogram.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>
#include <thread>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;

/// 1, 2 and 4 ms, and what is longer.
using Small = TimeHistogram<std::chrono::milliseconds, 1, 3>;
using Counts = std::vector<std::uint64_t>;

Histogram with(std::initializer_list<std::chrono::milliseconds> times) {
  Small histogram;
  for (const auto time : times) histogram.add(time);
  return histogram.snapshot();
}

TEST(TimeHistogram, CountsATimeThatIsEqualToABoundBelowIt) {
  EXPECT_EQ(with({0ms, 1ms}).counts, (Counts{2, 0, 0, 0}));
  EXPECT_EQ(with({2ms}).counts, (Counts{0, 1, 0, 0}));
  EXPECT_EQ(with({3ms, 4ms}).counts, (Counts{0, 0, 2, 0}));
  EXPECT_EQ(with({5ms, std::chrono::milliseconds::max()}).counts, (Counts{0, 0, 0, 2}));
}

TEST(TimeHistogram, TakesLessThanNothingForNothing) {
  const Histogram histogram = with({-5ms, std::chrono::milliseconds::min()});
  EXPECT_EQ(histogram.counts, (Counts{2, 0, 0, 0}));
  EXPECT_EQ(histogram.sum, 0s);
}

TEST(TimeHistogram, SumsUpInSeconds) {
  const Histogram histogram = with({3ms, 40ms, 2s});
  EXPECT_EQ(histogram.bounds, (std::vector<Histogram::Seconds>{1ms, 2ms, 4ms}));
  EXPECT_EQ(histogram.sum.count(), 2.043);
  EXPECT_EQ(histogram.count, 3U);
}

TEST(TimeHistogram, OfHandlersReachesFromATenthOfAMillisecondToMinutes) {
  HandlerTimes times;
  times.add(100us);
  times.add(100us + 1ns);
  times.add(100s);
  const Histogram histogram = times.snapshot();
  EXPECT_EQ(histogram.bounds.front().count(), 0.0001);
  EXPECT_EQ(histogram.bounds.back().count(), 104.8576);
  EXPECT_EQ(histogram.counts[0], 1U);
  EXPECT_EQ(histogram.counts[1], 1U);
  EXPECT_EQ(histogram.counts[20], 1U);
}

TEST(TimeHistogram, MissesNothingFromManyThreads) {
  Small histogram;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1'000; ++j) histogram.add(2ms);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.snapshot().counts, (Counts{0, 4'000, 0, 0}));
  EXPECT_EQ(histogram.snapshot().sum, 8s);
}

TEST(HistogramQuantile, IsNothingWithoutTimes) {
  EXPECT_EQ(Histogram{}.quantile(0.5), std::nullopt);
  EXPECT_EQ(with({}).quantile(0.5), std::nullopt);
}

TEST(HistogramQuantile, LiesWhereTimesSpreadEvenlyBetweenBoundsWould) {
  const Histogram histogram = with({1ms, 2ms, 3ms, 4ms});  // 1 to 1 ms, 1 to 2 ms, 2 to 4 ms
  EXPECT_DOUBLE_EQ(histogram.quantile(0.25)->count(), 0.001);
  EXPECT_DOUBLE_EQ(histogram.quantile(0.5)->count(), 0.002);
  EXPECT_DOUBLE_EQ(histogram.quantile(0.75)->count(), 0.003);
  EXPECT_DOUBLE_EQ(histogram.quantile(1)->count(), 0.004);
  EXPECT_DOUBLE_EQ(histogram.quantile(0)->count(), 0);
}

TEST(HistogramQuantile, IsTheHighestBoundForWhatIsAboveAll) {
  EXPECT_EQ(with({1h}).quantile(0.5), Histogram::Seconds{4ms});
}

TEST(HistogramQuantile, TakesAPartThatIsNoneForTheNearestOne) {
  const Histogram histogram = with({1ms, 2ms});
  EXPECT_EQ(histogram.quantile(7), histogram.quantile(1));
  EXPECT_EQ(histogram.quantile(-7), histogram.quantile(0));
}

TEST(HistogramQuantile, BearsCountsThatDoNotFitTheBounds) {
  const Histogram few{.bounds = {1s, 2s}, .counts = {3}};
  EXPECT_EQ(few.quantile(1), Histogram::Seconds{1s});
  const Histogram none{.bounds = {}, .counts = {3}};
  EXPECT_EQ(none.quantile(1), std::nullopt);
}

}  // namespace
}  // namespace millrace::detail
