#include "worker/turnstile.hpp"

#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

TEST(Turnstile, LetsOneThroughAtATime) {
  Turnstile turnstile;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 500; ++j) {
        const Turnstile::Pass pass{turnstile};
        if (++inside > most) most = inside.load();
        std::this_thread::yield();
        --inside;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most, 1);
}

/// True once the thread sleeps: having nothing else to wait for, it waits in the turnstile.
bool sleeps(pid_t thread) {
  std::ifstream file{"/proc/self/task/" + std::to_string(thread) + "/stat"};
  std::string number, name, state;
  return file >> number >> name >> state && state == "S";
}

TEST(Turnstile, LetsAWaiterThroughBeforeOneThatComesBackAtOnce) {
  Turnstile turnstile;
  std::vector<std::string> order;
  std::atomic<pid_t> waiting{0};
  std::optional<Turnstile::Pass> first{std::in_place, turnstile};
  std::thread waiter{[&] {
    waiting = gettid();
    const Turnstile::Pass pass{turnstile};
    order.emplace_back("waits");
  }};
  EXPECT_TRUE(test::wait_until([&] { return waiting != 0 && sleeps(waiting); }));
  first.reset();
  {
    const Turnstile::Pass again{turnstile};
    order.emplace_back("comes back");
  }
  waiter.join();
  EXPECT_EQ(order, (std::vector<std::string>{"waits", "comes back"}));
}

}  // namespace
}  // namespace millrace::detail
