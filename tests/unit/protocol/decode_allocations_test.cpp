#include "protocol/decode.hpp"

#include "resp.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <utility>

namespace {
thread_local std::size_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace millrace::detail {
namespace {

std::string list_of(std::size_t entries) {
  std::string wire = "*" + std::to_string(entries) + "\r\n";
  for (std::size_t i = 0; i < entries; ++i) {
    wire += "*2\r\n$6\r\n1000-0\r\n*4\r\n$5\r\norder\r\n$20\r\n";
    wire += std::string(20, 'x') + "\r\n$5\r\ntotal\r\n$4\r\n9.90\r\n";
  }
  return wire;
}

template <typename Decode>
std::size_t allocations_of(Decode decode) {
  const std::size_t before = allocations;
  decode();
  return allocations - before;
}

std::size_t of_range(std::size_t entries) {
  Reply reply = resp(list_of(entries));
  EntryBatch batch;
  const std::size_t count = allocations_of([&] { batch = decode::entries(std::move(reply)); });
  EXPECT_EQ(batch.size(), entries);
  return count;
}

std::size_t of_read(std::size_t entries) {
  Reply reply = resp("*1\r\n*2\r\n$1\r\ns\r\n" + list_of(entries));
  EntryBatch batch;
  const std::size_t count = allocations_of([&] { batch = decode::read(std::move(reply)); });
  EXPECT_EQ(batch.size(), entries);
  return count;
}

TEST(DecodeAllocations, AreCounted) {
  EXPECT_EQ(allocations_of([] { delete new int{1}; }), 1U);
}

TEST(DecodeAllocations, DoNotGrowWithTheEntries) {
  EXPECT_EQ(of_range(1), of_range(1'000));
  EXPECT_EQ(of_read(1), of_read(1'000));
  EXPECT_LE(of_range(1'000), 4U);  // entries, fields, the list of replies, the batch
  EXPECT_LE(of_read(1'000), 4U);
}

}  // namespace
}  // namespace millrace::detail
