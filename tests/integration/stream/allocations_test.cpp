#include <millrace/event_stream.hpp>

#include "support/stream_test.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

// Every allocation of this program goes through here, that of operator new and of hiredis, too. The
// sanitizers have a malloc of their own.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MILLRACE_IS_SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(MILLRACE_IS_SANITIZED) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define MILLRACE_COUNTS_ALLOCATIONS
#endif

namespace {
thread_local std::size_t memory_asked_for = 0;
}

#ifdef MILLRACE_COUNTS_ALLOCATIONS

extern "C" {
void* __libc_malloc(std::size_t size);              // NOLINT: glibc's name
void* __libc_calloc(std::size_t n, std::size_t s);  // NOLINT
void* __libc_realloc(void* old, std::size_t size);  // NOLINT

void* malloc(std::size_t size) noexcept {
  ++memory_asked_for;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) noexcept {
  ++memory_asked_for;
  return __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  ++memory_asked_for;
  return __libc_realloc(old, size);
}
}
#endif

namespace millrace::test {
namespace {

const OwnedFields kFields{{"order", "1000017"},
                          {"state", "a value that is no short string at all"}};

/// Those of the second time: the first one makes connection and buffers.
template <typename Call>
std::size_t allocations_of(Call call) {
  call();
  const std::size_t before = memory_asked_for;
  call();
  return memory_asked_for - before;
}

class Allocations : public StreamTest {
 protected:
  void SetUp() override {
#ifndef MILLRACE_COUNTS_ALLOCATIONS
    GTEST_SKIP() << "this program's allocations are not its own to count";
#endif
    StreamTest::SetUp();
    if (!IsSkipped()) s().ensure_group("g", GroupStart::beginning());
  }

  void fill(std::size_t entries) const { s().add_batch(std::vector(entries, kFields)); }
};

TEST_P(Allocations, AreCounted) {
  EXPECT_EQ(allocations_of([] { delete new int{1}; }), 1U);
  EXPECT_EQ(allocations_of([] { std::free(std::calloc(1, 1)); }), 1U);
}

TEST_P(Allocations, AreNoneForAnAppend) {
  EXPECT_EQ(allocations_of([&] { s().add(kFields); }), 0U);
  EXPECT_EQ(allocations_of([&] { s().produce("placed", kFields); }), 0U);
}

TEST_P(Allocations, OfABatchDoNotGrowWithItsEntries) {
  const std::vector<OwnedFields> hundred(100, kFields);
  const std::vector<OwnedFields> thousand(1'000, kFields);
  EXPECT_LE(allocations_of([&] { s().add_batch(hundred); }), 3U);
  EXPECT_LE(allocations_of([&] { s().add_batch(thousand); }), 3U);
}

TEST_P(Allocations, OfReadingAndAcknowledgingDoNotGrowWithTheEntries) {
  fill(3'000);
  const auto consume = [&](std::size_t count) {
    return allocations_of([&] {
      const EntryBatch batch = s().consume("g", "c", {.count = count, .block = 0ms});
      EXPECT_EQ(s().ack("g", batch), count);
    });
  };
  EXPECT_LE(consume(1), 8U);
  EXPECT_LE(consume(100), 8U);
  EXPECT_LE(consume(1'000), 8U + 3U * 3U) << "a piece of 64 KiB may take three more";
}

TEST_P(Allocations, OfReplayDoNotGrowWithTheEntries) {
  fill(100);
  EXPECT_LE(allocations_of([&] { EXPECT_EQ(s().replay({}, {}, 10).size(), 10U); }), 7U);
  EXPECT_LE(allocations_of([&] { EXPECT_EQ(s().replay({}, {}, 100).size(), 100U); }), 7U);
}

TEST_P(Allocations, OfTakingOverDoNotGrowWithTheEntries) {
  fill(100);
  const EntryBatch pending = s().consume("g", "c", {.count = 100, .block = 0ms});
  const auto ids = pending.ids();
  const auto claim = [&](std::size_t count) {
    return allocations_of([&] {
      const auto some = std::span{ids}.first(count);
      EXPECT_EQ(s().claim("g", "d", 0ms, some).claimed.size(), count);
    });
  };
  const auto autoclaim = [&](std::size_t count) {
    return allocations_of([&] {
      const AutoclaimOptions options{.min_idle = 0ms, .count = count};
      EXPECT_EQ(s().autoclaim_page("g", "e", options).claimed.size(), count);
    });
  };
  EXPECT_LE(claim(10), 9U);
  EXPECT_LE(claim(100), 9U);
  EXPECT_LE(autoclaim(10), 12U);
  EXPECT_LE(autoclaim(100), 12U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Allocations);

}  // namespace
}  // namespace millrace::test
