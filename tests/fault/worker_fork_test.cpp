#include "worker_test.hpp"

#include <millrace/worker_group.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>

namespace millrace::test {
namespace {

template <typename Action>
bool is_refused(Action action) {
  try {
    action();
  } catch (const UnsupportedError& error) {
    return std::string{error.what()}.find("after fork()") != std::string::npos;
  }
  return false;
}

/// All that there is for a child to call, which is the same for a worker and for several.
template <typename Workers>
bool refuses_all_calls(Workers& workers) {
  return is_refused([&] { workers.start(); }) && is_refused([&] { workers.stop(); }) &&
         is_refused([&] { workers.pause(); }) && is_refused([&] { workers.resume(); }) &&
         is_refused([&] { workers.reap_idle_pending(); }) &&
         is_refused([&] { workers.wait_ready(1ms); }) &&
         is_refused([&] { static_cast<void>(workers.state()); }) &&
         is_refused([&] { static_cast<void>(workers.failure()); }) &&
         is_refused([&] { static_cast<void>(workers.stats()); });
}

class WorkerFork : public WorkerTest {
 protected:
  /// Runs `child` in a child process. True if it returned true, and in time.
  static bool holds_in_child(const std::function<bool()>& child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      bool holds = false;
      try {
        holds = child();
      } catch (...) {
        holds = false;
      }
      ::_exit(holds ? 0 : 1);
    }
    int status = -1;
    if (!wait_until([&] { return ::waitpid(pid, &status, WNOHANG) == pid; })) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  WorkerOptions patient() {
    WorkerOptions patient = options();
    patient.min_idle = 1h;
    patient.block = 10min;
    return patient;
  }
};

TEST_F(WorkerFork, AChildCanDestroyAWorkerThatRuns) {
  Journal journal;
  auto worker = std::make_unique<ConsumerWorker>(stream(), patient(), journal.handler());
  worker->start();
  ASSERT_TRUE(blocked());
  EXPECT_TRUE(holds_in_child([&] {
    worker->request_stop();
    worker.reset();
    return true;
  }));
  EXPECT_EQ(worker->state(), WorkerState::kRunning) << "the parent's goes on";
  EXPECT_TRUE(journal.wait_for(append_ids(1)));
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(heard().connected(), 1U);
  worker->stop();
  EXPECT_EQ(worker->state(), WorkerState::kStopped);
}

TEST_F(WorkerFork, AChildCanDestroyAWorkerThatDoesNotRunYetOrAnyMore) {
  auto worker = std::make_unique<ConsumerWorker>(stream(), patient(), [](const Delivery&) {});
  const auto destroys = [&] {
    return holds_in_child([&] {
      worker.reset();
      return true;
    });
  };
  EXPECT_TRUE(destroys());
  worker->start();
  worker->stop();
  EXPECT_TRUE(destroys());
}

TEST_F(WorkerFork, AChildGetsAnErrorFromEveryCallOfAWorker) {
  ConsumerWorker worker{stream(), patient(), [](const Delivery&) {}};
  worker.start();
  ASSERT_TRUE(blocked());
  EXPECT_TRUE(holds_in_child([&] {
    return refuses_all_calls(worker) && is_refused([&] { static_cast<void>(worker.is_ready()); }) &&
           is_refused([&] { static_cast<void>(worker.is_alive(1s)); }) &&
           worker.consumer() == "alice";
  }));
  EXPECT_EQ(worker.state(), WorkerState::kRunning);
}

TEST_F(WorkerFork, AChildGetsAnErrorFromEveryCallOfAWorkerGroupAndCanDestroyIt) {
  auto workers = std::make_unique<WorkerGroup>(stream(), patient(), 2, [](const Delivery&) {});
  workers->start();
  ASSERT_TRUE(blocked(2));
  EXPECT_TRUE(holds_in_child([&] {
    const bool refuses = refuses_all_calls(*workers);
    workers->request_stop();
    workers.reset();
    return refuses;
  }));
  EXPECT_EQ(workers->state(), WorkerState::kRunning);
  workers->stop();
}

TEST_F(WorkerFork, ACompletionDoesNothingInAChild) {
  class Verdicts : public Observer {
   public:
    void on_verdict(const Delivery&, const Verdict&) override { ++heard; }
    std::atomic<int> heard{0};
  };
  append_ids(1);
  const auto verdicts = std::make_shared<Verdicts>();
  WorkerOptions options = patient();
  options.observer = verdicts;
  std::mutex mutex;
  Completion completion;
  bool deferred = false;
  ConsumerWorker worker{stream(), options, [&](const Delivery& delivery) {
                          const std::lock_guard lock{mutex};
                          completion = delivery.defer();
                          deferred = true;
                        }};
  worker.start();
  ASSERT_TRUE(wait_until([&] {
    const std::lock_guard lock{mutex};
    return deferred;
  }));
  EXPECT_TRUE(holds_in_child([&] {
    completion = Completion{};
    return verdicts->heard == 0;  // nor is it tried again
  }));
  EXPECT_EQ(pending(), 1);
  completion.ack();
  EXPECT_TRUE(nothing_is_pending());
  EXPECT_EQ(verdicts->heard, 1);
}

}  // namespace
}  // namespace millrace::test
