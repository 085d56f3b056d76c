#include <millrace/format.hpp>

#include <gtest/gtest.h>

#include <string>

namespace millrace {
namespace {

TEST(WorkerFormat, NamesLogLevels) {
  EXPECT_EQ(fmt::format("{}", Observer::LogLevel::kInfo), "info");
  EXPECT_EQ(fmt::format("[{:>7}]", Observer::LogLevel::kWarning), "[warning]");
  EXPECT_EQ(fmt::format("[{:>7}]", Observer::LogLevel::kError), "[  error]");
}

TEST(WorkerFormat, NamesStates) {
  std::string states;
  for (const WorkerState state :
       {WorkerState::kCreated, WorkerState::kStarting, WorkerState::kRunning, WorkerState::kPaused,
        WorkerState::kDegraded, WorkerState::kDraining, WorkerState::kStopped,
        WorkerState::kFailed}) {
    states += fmt::format("{} ", state);
  }
  EXPECT_EQ(states, "created starting running paused degraded draining stopped failed ");
}

}  // namespace
}  // namespace millrace
