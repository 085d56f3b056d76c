#include <millrace/error.hpp>
#include <millrace/producer.hpp>

#include "producer_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace millrace::test {
namespace {

class ProducerConfig : public ProducerTest {};

TEST_F(ProducerConfig, NamesTheOptionTheValueAndTheRule) {
  const auto refusal = [](auto change) -> std::string {
    ProducerOptions options;
    change(options);
    try {
      const Producer producer{nowhere(), options};
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "none";
  };
  using Options = ProducerOptions;
  EXPECT_EQ(refusal([](Options& o) { o.max_batch = 0; }),
            "ProducerOptions::max_batch is 0: it has to be from 1 to 100000");
  EXPECT_NE(refusal([](Options& o) { o.max_batch = 100'001; }), "none");
  EXPECT_EQ(refusal([](Options& o) { o.max_batch_bytes = 0; }),
            "ProducerOptions::max_batch_bytes is 0: it has to be at least 1");
  EXPECT_NE(refusal([](Options& o) { o.max_queued = 0; }), "none");
  EXPECT_NE(refusal([](Options& o) { o.max_queued_bytes = 0; }), "none");
  EXPECT_EQ(refusal([](Options& o) { o.linger = -1ms; }),
            "ProducerOptions::linger is -1 ms: it has to be 0 ms or more");
  EXPECT_NE(refusal([](Options& o) { o.send_timeout = -1ms; }), "none");
  EXPECT_NE(refusal([](Options& o) { o.delivery_timeout = 0ms; }), "none");
  EXPECT_NE(refusal([](Options& o) { o.close_timeout = -1ms; }), "none");
  EXPECT_NE(refusal([](Options& o) { o.reconnect_min = 0ms; }), "none");
  EXPECT_NE(refusal([](Options& o) { o.reconnect_max = 99ms; }), "none");
  EXPECT_EQ(refusal([](Options& o) { o.linger = std::chrono::hours{24 * 3'654}; }).substr(0, 26),
            "ProducerOptions::linger is");
  EXPECT_EQ(refusal([](Options&) {}), "none");
}

}  // namespace
}  // namespace millrace::test
