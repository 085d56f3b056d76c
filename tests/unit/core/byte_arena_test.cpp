#include "core/byte_arena.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

TEST(ByteArena, KeepsEachStringWhereItWasPut) {
  ByteArena arena;
  std::vector<std::string> strings;
  std::vector<std::string_view> stored;
  for (std::size_t i = 0; i < 3'000; ++i) {
    strings.emplace_back(i * 7 % 900, static_cast<char>(i));
    stored.push_back(arena.store(strings.back()));
  }

  for (std::size_t i = 0; i < strings.size(); ++i) ASSERT_EQ(stored[i], strings[i]);
}

TEST(ByteArena, KeepsViewsValidWhenItMoves) {
  ByteArena arena;
  const std::string_view small = arena.store("small");
  const std::string_view large = arena.store(std::string(100'000, 'x'));

  ByteArena moved{std::move(arena)};
  ByteArena assigned;
  assigned = std::move(moved);
  for (int i = 0; i < 1'000; ++i) assigned.store("more");

  EXPECT_EQ(small, "small");
  EXPECT_EQ(large, std::string(100'000, 'x'));
}

TEST(ByteArena, CanBeUsedAfterItWasMovedFrom) {
  ByteArena arena;
  const std::string_view before = arena.store("before");
  const ByteArena other{std::move(arena)};

  EXPECT_EQ(arena.store("after"), "after");  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(before, "before");
}

TEST(ByteArena, StoresEveryByteAndTheEmptyString) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  ByteArena arena;

  EXPECT_EQ(arena.store(all), all);
  EXPECT_EQ(arena.store(""), "");
}

TEST(ByteArena, DoesNotCloseAChunkForOneLargeString) {
  ByteArena arena;
  const char* const before = arena.store("before").data();
  arena.store(std::string(5'000, 'x'));

  EXPECT_EQ(arena.store("after").data(), before + 6);
}

}  // namespace
}  // namespace millrace::detail
