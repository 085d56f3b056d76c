#include <millrace/worker_group.hpp>

#include "worker_test.hpp"

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <ostream>
#include <thread>
#include <unordered_set>
#include <vector>

#if defined(__SANITIZE_THREAD__)
#define MILLRACE_TEST_UNDER_TSAN
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MILLRACE_TEST_UNDER_TSAN
#endif
#endif

namespace millrace::test {
namespace {

#ifdef MILLRACE_TEST_UNDER_TSAN
constexpr int kStarts = 100;
#else
constexpr int kStarts = 1'000;
#endif

/// What this process has of the machine.
struct Use {
  std::size_t threads = 0;
  std::size_t descriptors = 0;
  friend bool operator==(const Use&, const Use&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Use& use) {
    return out << use.threads << " threads and " << use.descriptors << " descriptors";
  }
};

Use use_now() {
  const auto entries = [](const char* folder) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator{folder}, {}));
  };
  return {.threads = entries("/proc/self/task"), .descriptors = entries("/proc/self/fd")};
}

/// Appends all the time, as long as what has not been handled is not too much.
class Load {
 public:
  explicit Load(EventStream stream)
      : stream_{std::move(stream)}, thread_{[this] { append_until_ended(); }} {}
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { end(); }

  void end() {
    ended_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::size_t appended() const { return appended_; }

  void handled(StreamId id) {
    const std::lock_guard lock{mutex_};
    handled_.insert(id);
  }
  std::size_t handled() const {
    const std::lock_guard lock{mutex_};
    return handled_.size();
  }

 private:
  void append_until_ended() {
    const std::vector<OwnedFields> ten(10, {{"f", "v"}});
    while (!ended_) {
      if (appended_ > handled() + 200) {
        std::this_thread::yield();
        continue;
      }
      for (const AddResult& result : stream_.add_batch(ten)) {
        EXPECT_TRUE(result.id.has_value());
        if (result.id) ++appended_;
      }
    }
  }

  const EventStream stream_;
  std::atomic<bool> ended_{false};
  std::atomic<std::size_t> appended_{0};
  mutable std::mutex mutex_;
  std::unordered_set<StreamId> handled_;
  std::thread thread_;
};

class WorkerRestarts : public WorkerTest {
 protected:
  WorkerOptions options(int start) {
    WorkerOptions options = WorkerTest::options();
    options.consumer = start % 2 == 0 ? "alice" : "";
    options.concurrency = start % 3 == 0 ? 4 : 1;
    options.min_idle = 300ms;  // what is released is soon had by the next
    options.max_deliveries = 1'000'000;
    return options;
  }

  /// One life of a worker, of which there are several kinds.
  void start_and_stop(int start, Load& load) {
    const std::size_t before = load.handled();
    ConsumerWorker worker{stream_, options(start),
                          [&load](const Delivery& delivery) { load.handled(delivery.entry.id()); }};
    worker.start();
    if (start % 4 != 0) {
      ASSERT_TRUE(wait_until([&] { return load.handled() > before; })) << "start " << start;
    }
    if (start % 5 != 0) {
      EXPECT_THAT(worker.stop(kGenerous).abandoned, ::testing::IsEmpty());
      EXPECT_EQ(worker.state(), WorkerState::kStopped);
    }
  }

  EventStream stream_ = stream();
};

TEST_F(WorkerRestarts, LeaveNoThreadAndNoDescriptorAndNoConsumerBehind) {
#ifdef MILLRACE_TEST_UNDER_TSAN
  std::printf("UNDER TSAN THERE ARE %d STARTS, NOT 1,000\n", kStarts);
#endif
  RecordProperty("starts", kStarts);
  raw()("PING");
  {
    ConsumerWorker first{stream(), options(0), [](const Delivery&) {}};
    first.start();  // what the process makes once, it has from here on
    ASSERT_TRUE(first.wait_ready(kGenerous));
  }
  const Use before = use_now();
  {
    Load load{stream()};
    for (int start = 0; start < kStarts; ++start) start_and_stop(start, load);
    load.end();

    WorkerGroup last{stream(), options(1), 2,
                     [&load](const Delivery& delivery) { load.handled(delivery.entry.id()); }};
    last.start();
    EXPECT_TRUE(wait_until([&] { return load.handled() == load.appended(); })) << "none is lost";
    EXPECT_TRUE(nothing_is_pending());
    EXPECT_TRUE(wait_until([&] { return consumers().size() <= 2; })) << "but those that live";
    last.stop();
    std::printf("%d starts, %zu entries\n", kStarts, load.appended());
  }
  stream_ = stream();  // with another pool, which has no connection yet
  EXPECT_THAT(consumers(), ::testing::IsEmpty());
  EXPECT_TRUE(wait_until([&] { return use_now() == before; }))
      << before << " before, and now " << use_now();
}

}  // namespace
}  // namespace millrace::test
