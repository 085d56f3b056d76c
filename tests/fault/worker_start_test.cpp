#include "support/no_threads.hpp"
#include "worker_test.hpp"

#include <system_error>

namespace millrace::test {
namespace {

class WorkerStart : public WorkerTest {};

#ifdef MILLRACE_TEST_HAS_NO_THREADS

TEST_F(WorkerStart, ThatGetsNoThreadSaysSoAndIsTheEnd) {
  auto worker = std::make_unique<ConsumerWorker>(stream(), options(), [](const Delivery&) {});
  {
    const NoThreads none;
    EXPECT_THROW(worker->start(), std::system_error);
  }
  EXPECT_EQ(worker->state(), WorkerState::kFailed);
  EXPECT_TRUE(worker->failure().has_value());
  EXPECT_FALSE(worker->wait_ready(kGenerous));
  EXPECT_THROW(worker->start(), InvalidArgument);
  const auto started = std::chrono::steady_clock::now();
  worker->stop(kGenerous);
  worker.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - started, 5s) << "there is nobody to wait for";
}

#endif

}  // namespace
}  // namespace millrace::test
