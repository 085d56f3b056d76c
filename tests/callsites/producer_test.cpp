/// A Producer's calls as users write them.

#include <millrace/error.hpp>
#include <millrace/producer.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;

static_assert(!std::is_copy_constructible_v<Producer> && !std::is_move_constructible_v<Producer>);

/// Nobody serves it: what it is given is answered when it goes.
class ProducerCalls : public ::testing::Test {
 protected:
  const EventStream stream{ConnectionPool{{.unix_socket = "/nonexistent/millrace"}}, "k"};
  int calls = 0;  // before the producer, whose end makes the last calls
  Producer producer{stream, {.close_timeout = 0ms}};
};

TEST_F(ProducerCalls, SendAList) {
  EXPECT_TRUE(producer.send({{"a", "b"}}).valid());
  EXPECT_TRUE(producer.send({{"a", "1"}, {"b", "2"}}).valid());
  EXPECT_EQ(producer.stats().taken, 2U);
}

TEST_F(ProducerCalls, SendARangeOrAnEntry) {
  const std::map<std::string, std::string> map{{"a", "1"}, {"b", "2"}};
  std::future<StreamId> future = producer.send(map);
  EXPECT_TRUE(future.valid());
  EXPECT_TRUE(producer.send(OwnedFields{{"a", "b"}}).valid());
  const auto batch =
      EntryBatch::of(std::vector<OwnedEntry>{{.id = {1, 0}, .fields = {{"a", "b"}}}});
  EXPECT_TRUE(producer.send(batch[0]).valid());
}

TEST_F(ProducerCalls, SendWithACallback) {
  producer.send({{"a", "b"}}, [](const AddResult& result) { EXPECT_TRUE(result.error); });
  producer.send({{"a", "b"}}, [](const auto& result) { EXPECT_FALSE(result.id); });
  const std::map<std::string, std::string> map{{"a", "1"}};
  const std::function<void(const AddResult&)> done = [this](const AddResult&) { ++calls; };
  producer.send(map, done);
  EXPECT_FALSE(producer.flush(0ms));
}

TEST_F(ProducerCalls, AreMadeWithSomeOptions) {
  const Producer lingering{stream, {.max_batch = 10, .linger = 5ms}};
  const Producer plain{EventStream{ConnectionPool{}, "k"}};
  EXPECT_EQ(plain.stats().queued, 0U);
}

}  // namespace
}  // namespace millrace
