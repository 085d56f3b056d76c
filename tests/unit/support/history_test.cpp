#include "support/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using Event = Record::Event;

class History : public ::testing::Test {
 protected:
  History() {
    std::string folder = std::filesystem::temp_directory_path() / "millrace-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error{"mkdtemp"};
    folder_ = folder;
  }
  ~History() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path file() const { return folder_ / "history"; }
  void append(std::string_view text) const { std::ofstream{file(), std::ios::app} << text; }

 private:
  std::filesystem::path folder_;
};

const Record kCall{.event = Event::kStarted,
                   .at = 17ns,
                   .group = "g",
                   .id = {5, 1},
                   .attempt = 2,
                   .reclaimed = true,
                   .lane = 7};

TEST_F(History, ReadsWhatWasWritten) {
  const Record acked{.event = Event::kAcknowledged, .at = 18ns, .group = "h", .id = {6, 0}};
  HistoryWriter writer{file()};
  writer.write(kCall);
  writer.write(acked);
  EXPECT_THAT(read_history(file()), ::testing::ElementsAre(kCall, acked));
}

TEST_F(History, KnowsEveryEvent) {
  for (const char event : {'S', 'E', 'F', 'P', 'A', 'T', 'L', 'K', 'B'}) {
    Record record = kCall;
    record.event = static_cast<Event>(event);
    EXPECT_EQ(record_of(to_line(record)), record) << event;
  }
}

TEST_F(History, IsReadByTime) {
  Record later = kCall, earlier = kCall;
  later.at = 20ns;
  earlier.at = 10ns;
  HistoryWriter writer{file()};
  writer.write(later);
  writer.write(earlier);
  EXPECT_THAT(read_history(file()), ::testing::ElementsAre(earlier, later));
}

TEST_F(History, LeavesOutALineThatWasNotFinished) {
  HistoryWriter{file()}.write(kCall);
  append("S 18 g 5-");
  EXPECT_THAT(read_history(file()), ::testing::ElementsAre(kCall));
}

TEST_F(History, RefusesALineThatIsNoRecord) {
  for (const char* line :
       {"", "S 1 g 1-0 1 0", "S 1 g 1-0 1 0 - -", "Q 1 g 1-0 1 0 -", "S x g 1-0 1 0 -",
        "S 1 g 1-x 1 0 -", "S 1 g 1-0 x 0 -", "S 1 g 1-0 1 x -", "S 1 g 1-0 1 0 x"}) {
    EXPECT_EQ(record_of(line), std::nullopt) << line;
  }
  append("nonsense\n");
  HistoryWriter{file()}.write(kCall);
  EXPECT_THROW(read_history(file()), std::runtime_error);
}

TEST_F(History, HasWholeLinesOfThreadsThatWriteAtOnce) {
  constexpr std::uint64_t kEach = 2'000;
  HistoryWriter writer{file()};
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 1; thread <= 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        Record record = kCall;
        record.id = {thread, i};
        writer.write(record);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<StreamId> ids;
  for (const Record& record : read_history(file())) ids.insert(record.id);
  EXPECT_EQ(ids.size(), 4 * kEach);
}

TEST_F(History, OfAProcessThatIsKilledIsWholeUpToItsLastRecord) {
  HistoryWriter writer{file()};
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {  // this program has one thread here
    for (std::uint64_t i = 1; i <= 100; ++i) {
      Record record = kCall;
      record.id = {i, 0};
      writer.write(record);
    }
    ::kill(::getpid(), SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(read_history(file()).size(), 100U);
}

}  // namespace
}  // namespace millrace::test
