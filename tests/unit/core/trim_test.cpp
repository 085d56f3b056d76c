#include <millrace/error.hpp>
#include <millrace/stream_options.hpp>

#include <gtest/gtest.h>

#include <string>

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(Trim, IsApproximateUnlessItIsToBeExact) {
  EXPECT_FALSE(Trim::max_len(10).is_exact());
  EXPECT_TRUE(Trim::max_len(10).exactly().is_exact());
}

TEST(Trim, HoldsWhatItWasMadeFrom) {
  EXPECT_EQ(std::get<Trim::MaxLen>(Trim::max_len(7).threshold()).count, 7U);
  EXPECT_EQ(std::get<Trim::MinId>(Trim::min_id({7, 1}).threshold()).id, (StreamId{7, 1}));
  EXPECT_EQ(std::get<Trim::MaxAge>(Trim::max_age(24h).threshold()).age, 24h);
}

TEST(Trim, RefusesANegativeAge) {
  EXPECT_EQ(std::get<Trim::MaxAge>(Trim::max_age(0ms).threshold()).age, 0ms);
  try {
    static_cast<void>(Trim::max_age(-1ms));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "Trim::max_age is -1 ms: it has to be 0 or more");
  }
}

TEST(Trim, HasALimitOnlyWhereItIsApproximate) {
  EXPECT_EQ(Trim::max_len(7).limit(100).limit(), 100U);
  EXPECT_EQ(Trim::max_len(7).limit(), std::nullopt);
  EXPECT_EQ(Trim::max_len(7).limit(100).exactly().limit(), std::nullopt);
  try {
    static_cast<void>(Trim::max_len(7).exactly().limit(5));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "Trim::limit is 5 on an exact trim: only an approximate one can have a limit");
  }
}

}  // namespace
}  // namespace millrace
