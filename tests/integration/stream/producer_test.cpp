#include <millrace/producer.hpp>

#include "support/stream_test.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace millrace::test {
namespace {

class ProducerOnAServer : public StreamTest {};

TEST_P(ProducerOnAServer, AppendsWhatWasSentInItsOrder) {
  const std::string binary{"a\0b\r\n", 5};
  Producer producer{s()};
  auto first = producer.send({{"n", "1"}, {"n", binary}});
  auto second = producer.send({{"", ""}});
  const StreamId first_id = first.get();
  EXPECT_LT(first_id, second.get());
  const auto entries = s().replay();
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].id(), first_id);
  EXPECT_EQ(entries[0].to_owned().fields, (OwnedFields{{"n", "1"}, {"n", binary}}));
  EXPECT_EQ(entries[1].to_owned().fields, (OwnedFields{{"", ""}}));
}

TEST_P(ProducerOnAServer, KeepsTheStreamAtItsRetention) {
  const EventStream bounded = stream("bounded", {.retention = Trim::max_len(10).exactly()});
  {
    Producer producer{bounded, {.max_batch = 7}};
    for (int n = 0; n < 500; ++n) {
      producer.send({{"n", std::to_string(n)}},
                    [](const AddResult& result) { EXPECT_TRUE(result.id.has_value()); });
    }
  }
  EXPECT_EQ(bounded.length(), 10U);
  EXPECT_EQ(bounded.tail(1).ids().size(), 1U);
  const auto last = bounded.tail(1);
  EXPECT_EQ(last[0].at("n"), "499");
}

TEST_P(ProducerOnAServer, JoinsTheSendsOfManyThreads) {
  constexpr std::size_t kThreads = 8;
  constexpr std::size_t kSends = 2'000;
  Producer producer{s()};
  std::atomic<std::size_t> appended{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t n = 0; n < kSends; ++n) {
        producer.send({{"t", std::to_string(t)}, {"n", std::to_string(n)}},
                      [&](const AddResult& result) { appended += result.id ? 1 : 0; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(producer.flush(kGenerous));
  EXPECT_EQ(appended, kThreads * kSends);
  EXPECT_EQ(s().length(), kThreads * kSends);
  EXPECT_LT(producer.stats().batches, kThreads * kSends / 2);

  std::vector<std::size_t> next(kThreads);
  for (const Entry& entry : s().replay_all()) {
    std::size_t& expected = next.at(std::stoul(std::string{entry.at("t")}));
    ASSERT_EQ(std::stoul(std::string{entry.at("n")}), expected);
    ++expected;
  }
}

TEST_P(ProducerOnAServer, TellsOfAKeyOfAnotherType) {
  raw()("SET", "s", "x");
  Producer producer{s()};
  auto future = producer.send({{"n", "1"}});
  EXPECT_THROW(future.get(), WrongTypeError);
  raw()("DEL", "s");
  EXPECT_NO_THROW(producer.send({{"n", "2"}}).get());
}

TEST_P(ProducerOnAServer, TakesNoPlaceInThePool) {
  const EventStream narrow{ConnectionPool{options(), {.max_connections = 1}}, "s"};
  Producer producer{narrow};
  producer.send({{"n", "1"}}).get();
  EXPECT_EQ(narrow.pool().stats().open, 0U);
}

MILLRACE_ON_BOTH_PROTOCOLS(ProducerOnAServer);

}  // namespace
}  // namespace millrace::test
