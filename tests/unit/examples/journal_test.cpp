#include "journal.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <vector>

namespace pipeline {
namespace {

class JournalTest : public testing::Test {
 protected:
  JournalTest() { std::filesystem::remove(path); }
  ~JournalTest() override { std::filesystem::remove(path); }

  const std::string path =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name();
  const Handled first{.id = {1, 0}, .checksum = 0xffff'ffff'ffff'ffff, .reclaimed = false};
  const Handled second{.id = {1796082693752, 7}, .checksum = 0, .reclaimed = true};
};

TEST_F(JournalTest, ReadsWhatWasWritten) {
  Journal journal{path};
  EXPECT_EQ(Journal::read(path), std::vector<Handled>{});
  journal.write(first);
  journal.write(second);
  EXPECT_EQ(Journal::read(path), (std::vector<Handled>{first, second}));
}

TEST_F(JournalTest, GoesOnWhereItWas) {
  Journal{path}.write(first);
  Journal{path}.write(second);
  EXPECT_EQ(Journal::read(path), (std::vector<Handled>{first, second}));
}

TEST_F(JournalTest, ALineThatWasCutShortIsNone) {
  Journal{path}.write(first);
  std::ofstream{path, std::ios::app} << "1796082693752-7 0 1";  // and no newline
  EXPECT_EQ(Journal::read(path), std::vector<Handled>{first});
}

TEST_F(JournalTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(Journal{path + "/none/such"}, std::system_error);
}

}  // namespace
}  // namespace pipeline
