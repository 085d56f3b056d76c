#include "worker/page_size.hpp"

#include <gtest/gtest.h>

namespace millrace::detail {
namespace {

TEST(PageSize, IsHalvedDownToOneAndDoubledUpToTheMost) {
  PageSize size{10};
  EXPECT_EQ(size.get(), 10U);
  for (const std::size_t next : {5U, 2U, 1U, 1U}) {
    size.timed_out();
    EXPECT_EQ(size.get(), next);
  }
  for (const std::size_t next : {2U, 4U, 8U, 10U, 10U}) {
    size.arrived();
    EXPECT_EQ(size.get(), next);
  }
}

}  // namespace
}  // namespace millrace::detail
