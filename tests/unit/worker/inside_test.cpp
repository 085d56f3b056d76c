#include "worker/inside.hpp"

#include "worker/worker.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

namespace millrace::detail {
namespace {

class InsideTest : public ::testing::Test {
 protected:
  const EventStream stream_{ConnectionPool{}, "s"};
  const WorkerOptions options_{.group = "g", .group_start = GroupStart::beginning()};
  const Worker first_{stream_, options_, [](const Delivery&) {}};
  const Worker second_{stream_, options_, [](const Delivery&) {}};
};

TEST_F(InsideTest, MarksAThreadAsLongAsItLives) {
  EXPECT_FALSE(Inside::of(first_));
  {
    const Inside inside{first_};
    EXPECT_TRUE(Inside::of(first_));
    EXPECT_FALSE(Inside::of(second_));
    std::thread{[&] { EXPECT_FALSE(Inside::of(first_)) << "another thread"; }}.join();
  }
  EXPECT_FALSE(Inside::of(first_));
}

TEST_F(InsideTest, IsInsideAllOfThemWhereOneIsInsideAnother) {
  const Inside outer{first_};
  {
    const Inside inner{second_};
    EXPECT_TRUE(Inside::of(first_));
    EXPECT_TRUE(Inside::of(second_));
  }
  EXPECT_TRUE(Inside::of(first_));
  EXPECT_FALSE(Inside::of(second_));
}

TEST_F(InsideTest, IsNotInsideAnyMoreAfterAnException) {
  try {
    const Inside inside{first_};
    throw std::runtime_error{"out"};
  } catch (const std::runtime_error&) {
    EXPECT_FALSE(Inside::of(first_));
  }
}

}  // namespace
}  // namespace millrace::detail
