#include "worker/turnstile.hpp"

#include "support/sleeping.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
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

TEST(Turnstile, LetsSoManyThroughAtATimeAndNoMore) {
  Turnstile turnstile{2};
  std::atomic<int> inside{0};
  const auto go_through = [&] {
    const Turnstile::Pass pass{turnstile};
    ++inside;
  };
  std::optional<Turnstile::Pass> first{std::in_place, turnstile};
  std::optional<Turnstile::Pass> second{std::in_place, turnstile};
  std::atomic<pid_t> waiting{0};
  std::thread third{[&] {
    waiting = gettid();
    go_through();
  }};
  EXPECT_TRUE(test::wait_until([&] { return waiting != 0 && test::sleeps(waiting); }));
  EXPECT_EQ(inside, 0);
  second.reset();
  third.join();
  EXPECT_EQ(inside, 1) << "although the first is inside yet";
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
  EXPECT_TRUE(test::wait_until([&] { return waiting != 0 && test::sleeps(waiting); }));
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
