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

TEST_F(WorkerStart, MakesItsGroupAlthoughTheServerIsOutOfMemory) {
  const Ids ids = append_ids(3);
  raw()("CONFIG", "SET", "maxmemory", 1);
  ASSERT_EQ(raw()("XADD", "s", "9-0", "f", "v").text.substr(0, 3), "OOM");
  Journal journal;
  ConsumerWorker worker{stream(), options(), journal.handler()};
  worker.start();
  EXPECT_TRUE(journal.wait_for(ids)) << heard().text();
  EXPECT_TRUE(nothing_is_pending());

  raw()("XGROUP", "DESTROY", "s", "g");
  EXPECT_TRUE(wait_until([&] { return !heard().recreated().empty(); })) << "nor does it later";
  EXPECT_FALSE(heard().saw(WorkerState::kDegraded)) << heard().text();
}

}  // namespace
}  // namespace millrace::test
