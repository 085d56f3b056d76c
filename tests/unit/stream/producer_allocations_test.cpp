#include <millrace/producer.hpp>

#include "producer_fixture.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>

namespace {
thread_local std::size_t allocations_here = 0;
}

void* operator new(std::size_t size) {
  ++allocations_here;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc{};
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

namespace millrace::test {
namespace {

class ProducerAllocations : public ProducerTest {
 protected:
  template <typename Send>
  static std::size_t of_a_round(Producer& producer, Send send) {
    const std::size_t before = allocations_here;
    for (int i = 0; i < 200; ++i) send();
    const std::size_t made = allocations_here - before;
    EXPECT_TRUE(producer.flush(kGenerous));
    return made;
  }
};

TEST_F(ProducerAllocations, AreNoneForTheSenderOnceThereIsRoomEnough) {
  ScriptedServer server{set_up_and_serve, ScriptedServer::Kind::kUnix};
  Producer producer{stream(server), quick()};
  std::size_t answers = 0;
  const auto send = [&] {
    producer.send({{"order", "17"}, {"n", "1"}}, [&](const AddResult&) { ++answers; });
  };
  // Blocks grow at first, each of those that take turns.
  EXPECT_TRUE(wait_until([&] { return of_a_round(producer, send) == 0; }));
  EXPECT_EQ(answers % 200, 0U);
}

TEST_F(ProducerAllocations, AreTheFuturesOwnWhereThereIsOne) {
  ScriptedServer server{set_up_and_serve, ScriptedServer::Kind::kUnix};
  Producer producer{stream(server), quick()};
  const std::size_t before = allocations_here;
  {
    std::promise<StreamId> promise;
    const auto future = promise.get_future();
  }
  const std::size_t own = allocations_here - before;
  ASSERT_GT(own, 0U);
  const auto send = [&] { producer.send({{"n", "1"}}); };
  EXPECT_TRUE(wait_until([&] { return of_a_round(producer, send) == 200 * own; }));
}

}  // namespace
}  // namespace millrace::test
