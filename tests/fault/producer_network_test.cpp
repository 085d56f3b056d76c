#include <millrace/event_stream.hpp>
#include <millrace/producer.hpp>

#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kSendsOfEach = 3'000;
#else
constexpr std::size_t kSendsOfEach = 100'000;
#endif
constexpr std::size_t kThreads = 16;
/// A slow machine sends less; what holds for fewer is the same.
constexpr std::chrono::seconds kSendingTime{20};

enum class Answer : std::uint8_t { kNone, kAppended, kNotApplied, kUnknown };

Answer answer_of(const Error& error) {
  return error.outcome() == Outcome::kUnknown ? Answer::kUnknown : Answer::kNotApplied;
}

/// What one thread sent, and was answered.
struct Sends {
  struct Send {
    std::atomic<int> answers{0};
    Answer answer = Answer::kNone;
    StreamId id{};
    StreamId found{};
    int times_found = 0;

    void note(Answer what, StreamId appended_as = {}) {
      answer = what;
      id = appended_as;
      ++answers;
    }
  };
  std::unique_ptr<std::array<Send, kSendsOfEach>> all =
      std::make_unique<std::array<Send, kSendsOfEach>>();
  std::size_t count = 0;
};

class ProducerNetwork : public ServerTest {
 protected:
  static void send_with_callbacks(Producer& producer, const std::string& thread, Sends& sends,
                                  Clock::time_point end) {
    for (; sends.count < kSendsOfEach && Clock::now() < end; ++sends.count) {
      Sends::Send& send = (*sends.all)[sends.count];
      const std::string n = std::to_string(sends.count);
      producer.send({{"t", thread}, {"n", n}}, [&send](const AddResult& result) {
        result.id ? send.note(Answer::kAppended, *result.id) : send.note(answer_of(*result.error));
      });
    }
  }

  static void send_with_futures(Producer& producer, const std::string& thread, Sends& sends,
                                Clock::time_point end) {
    std::vector<std::future<StreamId>> futures;
    for (; sends.count < kSendsOfEach && Clock::now() < end; ++sends.count) {
      futures.push_back(producer.send({{"t", thread}, {"n", std::to_string(sends.count)}}));
    }
    for (std::size_t n = 0; n < futures.size(); ++n) {
      Sends::Send& send = (*sends.all)[n];
      if (futures[n].wait_for(2 * kGenerous) != std::future_status::ready) continue;
      try {
        send.note(Answer::kAppended, futures[n].get());
      } catch (const Error& error) {
        send.note(answer_of(error));
      }
    }
  }

  static void find_all(const EventStream& stream, std::vector<Sends>& sends) {
    for (const Entry& entry : stream.replay_all()) {
      auto& of_thread = sends.at(std::stoul(std::string{entry.at("t")}));
      auto& send = of_thread.all->at(std::stoul(std::string{entry.at("n")}));
      send.found = entry.id();
      ++send.times_found;
    }
  }

  /// Counts what must not be; once each, a thread has no end of tests that fail.
  static void judge(const Sends& sends, std::size_t thread) {
    std::size_t not_once = 0, lost = 0, there = 0, twice = 0, disordered = 0;
    StreamId last{};
    for (std::size_t n = 0; n < sends.count; ++n) {
      const Sends::Send& send = (*sends.all)[n];
      not_once += send.answers == 1 ? 0 : 1;
      twice += send.times_found > 1 ? 1 : 0;
      if (send.answer == Answer::kNotApplied) there += send.times_found > 0 ? 1 : 0;
      if (send.answer != Answer::kAppended) continue;
      lost += send.times_found == 1 && send.found == send.id ? 0 : 1;
      disordered += last < send.id ? 0 : 1;
      last = send.id;
    }
    EXPECT_EQ(not_once, 0U) << "thread " << thread;
    EXPECT_EQ(lost, 0U) << "thread " << thread;
    EXPECT_EQ(there, 0U) << "thread " << thread;
    EXPECT_EQ(twice, 0U) << "thread " << thread;
    EXPECT_EQ(disordered, 0U) << "thread " << thread;
  }
};

TEST_F(ProducerNetwork, AnswersEachSendTrulyAndInOrderWhileItsConnectionsAreCutAtRandom) {
  Proxy proxy{server()};
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<Sends> sends(kThreads);
  ProducerStats stats;
  {
    ProducerOptions options;
    options.reconnect_min = options.reconnect_max = 5ms;
    options.send_timeout = options.delivery_timeout = options.close_timeout = 2 * kGenerous;
    options.max_queued = 20'000;
    Producer producer{EventStream{ConnectionPool{proxy.options()}, "s"}, options};

    std::atomic<bool> sent{false};
    std::thread cutter{[&] {
      std::minstd_rand random{seed};
      std::uniform_int_distribution<int> pause{10, 120};
      while (!sent) {
        std::this_thread::sleep_for(std::chrono::milliseconds{pause(random)});
        proxy.cut();
      }
    }};
    std::vector<std::thread> threads;
    const auto end = Clock::now() + kSendingTime;
    for (std::size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const auto send = t % 2 == 0 ? &send_with_callbacks : &send_with_futures;
        send(producer, std::to_string(t), sends[t], end);
      });
    }
    for (std::thread& thread : threads) thread.join();
    sent = true;
    cutter.join();
    ASSERT_TRUE(producer.flush(2 * kGenerous));
    stats = producer.stats();
  }
  find_all(EventStream{ConnectionPool{server().options()}, "s"}, sends);

  std::size_t count = 0;
  for (std::size_t t = 0; t < kThreads; ++t) {
    judge(sends[t], t);
    count += sends[t].count;
  }
  EXPECT_EQ(stats.taken, count);
  EXPECT_EQ(stats.appended + stats.failed + stats.unknown, count);
  EXPECT_GT(stats.reconnects, 0U);
  EXPECT_GT(stats.appended, 0U);
  RecordProperty("sent", std::to_string(count));
  RecordProperty("unknown", std::to_string(stats.unknown));
  RecordProperty("resent", std::to_string(stats.resent));
  RecordProperty("reconnects", std::to_string(stats.reconnects));
}

TEST_F(ProducerNetwork, ReportsAnEntryWhoseReplyWasLostAsUnknownAndAppendsItOnce) {
  Proxy proxy{server()};
  const EventStream stream{ConnectionPool{proxy.options()}, "s"};
  Producer producer{stream};
  producer.send({{"n", "0"}}).get();
  proxy.lose_reply_to("XADD");
  auto lost = producer.send({{"n", "1"}});
  try {
    lost.get();
    FAIL() << "its reply was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.outcome(), Outcome::kUnknown);
  }
  producer.send({{"n", "2"}}).get();
  EXPECT_EQ(stream.length(), 3U);
}

TEST_F(ProducerNetwork, GoesOnWhereAPeerSaysNothingAnyMore) {
  Proxy proxy{server()};
  ConnectionOptions impatient = proxy.options();
  impatient.command_timeout = 200ms;
  Producer producer{EventStream{ConnectionPool{impatient}, "s"}};
  producer.send({{"n", "0"}}).get();
  proxy.stall();
  auto lost = producer.send({{"n", "1"}});
  EXPECT_THROW(lost.get(), TimeoutError);
  auto later = producer.send({{"n", "2"}});
  proxy.flow();
  EXPECT_NO_THROW(later.get());
}

}  // namespace
}  // namespace millrace::test
