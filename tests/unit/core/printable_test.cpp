#include "core/printable.hpp"

#include <gtest/gtest.h>

namespace millrace::detail {
namespace {

TEST(Printable, LeavesTextAsItIs) { EXPECT_EQ(printable("orders:ä 1"), "orders:ä 1"); }

TEST(Printable, EscapesWhatWouldBreakALogLine) {
  EXPECT_EQ(printable(std::string("a\r\n\0\x7f", 5)), "a\\x0d\\x0a\\x00\\x7f");
}

TEST(Printable, CutsWhatIsLong) {
  EXPECT_EQ(printable(std::string(201, 'x')), std::string(200, 'x') + "...");
  EXPECT_EQ(printable(std::string(200, 'x')), std::string(200, 'x'));
}

}  // namespace
}  // namespace millrace::detail
