#include "worker_test.hpp"

#include <pthread.h>

#include <system_error>

namespace millrace::test {
namespace {

class WorkerStart : public WorkerTest {};

#ifdef __GLIBC__

/// While it lives, no thread can be made: their stacks would not fit into the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge{};
    pthread_getattr_default_np(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_{};
};

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
