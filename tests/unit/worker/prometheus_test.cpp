#include <millrace/prometheus.hpp>

#include "core/histogram.hpp"
#include "unit/worker/exposition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using test::Exposition;

/// A worker whose every number is another one.
WorkerStats alice() {
  detail::HandlerTimes handler_time;
  handler_time.add(100us);
  handler_time.add(3ms);
  detail::Ages age;
  age.add(1s);
  age.add(24h);
  return {.delivered = 1,
          .succeeded = 2,
          .failed = 3,
          .retried = 4,
          .dead_lettered = 5,
          .reclaimed = 6,
          .released = 7,
          .leases_lost = 8,
          .trimmed = 9,
          .reconnects = 10,
          .in_flight = 11,
          .queued_bytes = 12,
          .last_completion = std::chrono::system_clock::time_point{1'700'000'000s + 250ms},
          .handler_time = handler_time.snapshot(),
          .age = age.snapshot(),
          .state = WorkerState::kRunning,
          .stream = "orders",
          .group = "billing",
          .consumer = "alice"};
}

GroupHealth billing() {
  return {.stream = "orders",
          .group = "billing",
          .exists = true,
          .length = 100,
          .lag = -3,
          .unread = 20,
          .pending = 7,
          .oldest_pending = StreamId{1, 0},
          .oldest_pending_age = 90'500ms,
          .consumers = {{.name = "alice", .pending = 4, .idle = 1'500ms, .inactive = 2s},
                        {.name = "bob", .pending = 3, .idle = 0ms}}};
}

TEST(PrometheusText, HasEveryNumberOfAWorker) {
  const Exposition text{prometheus_text({alice()})};
  const Exposition::Labels labels{
      {"stream", "orders"}, {"group", "billing"}, {"consumer", "alice"}};
  double expected = 0;
  for (const std::string name : {"delivered", "succeeded", "failed", "retried", "dead_lettered",
                                 "reclaimed", "released", "leases_lost", "trimmed", "reconnects"}) {
    const std::string metric = "millrace_worker_" + name + "_total";
    EXPECT_EQ(text.value(metric, labels), ++expected) << name;
    EXPECT_EQ(text.family(metric).type, "counter");
  }
  EXPECT_EQ(text.value("millrace_worker_in_flight", labels), 11);
  EXPECT_EQ(text.value("millrace_worker_queued_bytes", labels), 12);
  EXPECT_EQ(text.value("millrace_worker_ready", labels), 1);
  EXPECT_EQ(text.value("millrace_worker_last_completion_timestamp_seconds", labels),
            1'700'000'000.25);
  EXPECT_EQ(text.family("millrace_worker_in_flight").type, "gauge");
}

TEST(PrometheusText, HasHistogramsInSeconds) {
  const Exposition text{prometheus_text({alice()})};
  const auto below = [&](const std::string& le) {
    return text.value("millrace_worker_handler_seconds_bucket", {{"le", le}});
  };
  EXPECT_EQ(text.family("millrace_worker_handler_seconds").type, "histogram");
  EXPECT_EQ(below("0.0001"), 1);
  EXPECT_EQ(below("0.0016"), 1);
  EXPECT_EQ(below("0.0032"), 2);
  EXPECT_EQ(below("104.8576"), 2);
  EXPECT_EQ(below("+Inf"), 2);
  EXPECT_DOUBLE_EQ(text.value("millrace_worker_handler_seconds_sum"), 0.0031);
  EXPECT_EQ(text.value("millrace_worker_handler_seconds_count"), 2);
  EXPECT_EQ(text.value("millrace_worker_age_seconds_bucket", {{"le", "1.024"}}), 1);
  EXPECT_EQ(text.value("millrace_worker_age_seconds_bucket", {{"le", "16777.216"}}), 1);
  EXPECT_EQ(text.value("millrace_worker_age_seconds_bucket", {{"le", "+Inf"}}), 2);
}

TEST(PrometheusText, HasEveryNumberOfAGroupAndItsConsumers) {
  const Exposition text{prometheus_text({}, {billing()})};
  const Exposition::Labels labels{{"stream", "orders"}, {"group", "billing"}};
  EXPECT_EQ(text.value("millrace_group_exists", labels), 1);
  EXPECT_EQ(text.value("millrace_group_stream_length", labels), 100);
  EXPECT_EQ(text.value("millrace_group_lag", labels), -3);
  EXPECT_EQ(text.value("millrace_group_unread", labels), 20);
  EXPECT_EQ(text.value("millrace_group_backlog", labels), 27);
  EXPECT_EQ(text.value("millrace_group_pending", labels), 7);
  EXPECT_EQ(text.value("millrace_group_oldest_pending_age_seconds", labels), 90.5);
  EXPECT_EQ(text.value("millrace_consumer_pending", {{"consumer", "bob"}}), 3);
  EXPECT_EQ(text.value("millrace_consumer_idle_seconds", {{"consumer", "alice"}}), 1.5);
  EXPECT_EQ(text.value("millrace_consumer_inactive_seconds"), 2) << "bob's is unknown";
  EXPECT_FALSE(text.has("millrace_worker_ready"));
}

TEST(PrometheusText, LeavesOutWhatIsUnknown) {
  const Exposition text{prometheus_text({WorkerStats{}}, {GroupHealth{}})};
  EXPECT_EQ(text.value("millrace_worker_ready"), 0);
  EXPECT_EQ(text.value("millrace_group_exists"), 0);
  for (const char* const unknown :
       {"millrace_worker_last_completion_timestamp_seconds", "millrace_worker_handler_seconds",
        "millrace_worker_age_seconds", "millrace_group_lag", "millrace_group_unread",
        "millrace_group_backlog", "millrace_group_oldest_pending_age_seconds",
        "millrace_consumer_pending"}) {
    EXPECT_FALSE(text.has(unknown)) << unknown;
  }
  EXPECT_EQ(prometheus_text({}), "");
}

TEST(PrometheusText, KeepsTheSamplesOfAMetricTogether) {
  WorkerStats bob = alice();
  bob.consumer = "bob";
  bob.delivered = 99;
  const Exposition text{prometheus_text({alice(), bob}, {billing()})};
  EXPECT_EQ(text.family("millrace_worker_delivered_total").samples.size(), 2U);
  EXPECT_EQ(text.value("millrace_worker_delivered_total", {{"consumer", "bob"}}), 99);
}

TEST(PrometheusText, HasOneSampleForTwoWorkersOfOneName) {
  WorkerStats again = alice();
  again.delivered = 99;
  const Exposition text{prometheus_text({alice(), again}, {billing(), billing()})};
  EXPECT_EQ(text.value("millrace_worker_delivered_total"), 99);
}

/// The consumer's name, as a reader of the text has it.
std::string read_back(std::string_view consumer) {
  WorkerStats stats;
  stats.consumer = consumer;
  return Exposition{prometheus_text({stats})}
      .family("millrace_worker_ready")
      .samples.at(0)
      .labels.at("consumer");
}

TEST(PrometheusText, KeepsANameOfAnyCharacters) {
  for (const std::string_view name : {"", "a\"b", "a\\b", "a\nb", "\\", "\"", "\\n", "a,b=\"c\"} 1",
                                      "<b>", "größer", "\u20ac", "\U0001F600"}) {
    EXPECT_EQ(read_back(name), name);
  }
}

TEST(PrometheusText, ShowsBytesThatAreNoTextAsNumbers) {
  using namespace std::string_view_literals;
  EXPECT_EQ(read_back("\xff"sv), "\\xff");
  EXPECT_EQ(read_back("a\0b"sv), "a\\x00b");
  EXPECT_EQ(read_back("a\rb\tc\x7f"sv), "a\\x0db\\x09c\\x7f");
  EXPECT_EQ(read_back("\xc3"sv), "\\xc3") << "its second byte is missing";
  EXPECT_EQ(read_back("\xc3\"x"sv), "\\xc3\"x") << "and so here";
  EXPECT_EQ(read_back("\x80z"sv), "\\x80z") << "a second byte without a first";
  EXPECT_EQ(read_back("\xc0\xaf"sv), "\\xc0\\xaf") << "longer than need be";
  EXPECT_EQ(read_back("\xe0\x80\xaf"sv), "\\xe0\\x80\\xaf") << "longer than need be";
  EXPECT_EQ(read_back("\xf0\x80\x80\xaf"sv), "\\xf0\\x80\\x80\\xaf") << "longer than need be";
  EXPECT_EQ(read_back("\xed\xa0\x80"sv), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(read_back("\xf4\x90\x80\x80"sv), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

}  // namespace
}  // namespace millrace
