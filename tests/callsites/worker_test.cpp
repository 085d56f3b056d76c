/// Workers, handlers and deliveries, as services write them. Nothing here is started.

#include <millrace/consumer_worker.hpp>
#include <millrace/entry.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/prometheus.hpp>
#include <millrace/worker_group.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <concepts>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;

static_assert(!std::movable<ConsumerWorker> && !std::copyable<ConsumerWorker>);

/// What a worker makes of `handler`.
Verdict::Kind verdict(Handler handler, const Delivery& delivery = {}) {
  return handler(delivery).kind();
}

constexpr auto kAck = Verdict::Kind::kAck;
constexpr auto kRetry = Verdict::Kind::kRetry;
constexpr auto kLeavePending = Verdict::Kind::kLeavePending;

Verdict retry_always(const Delivery&) { return Verdict::retry(); }
void do_nothing(const Delivery&) {}

TEST(WorkerCalls, SomeOptionsOfAWorker) {
  const EventStream stream{ConnectionPool{}, "k"};
  const auto handler = [](const Delivery&) {};
  const ConsumerWorker w{
      stream, {.group = "billing", .group_start = GroupStart::beginning()}, handler};
  EXPECT_EQ(w.state(), WorkerState::kCreated);
}

TEST(WorkerCalls, AWorkerOfTemporaries) {
  const ConsumerWorker w{EventStream{ConnectionPool{}, "k"},
                         WorkerOptions{.group = std::string{"billing"},
                                       .consumer = std::string{"a name that is not kept inside"},
                                       .group_start = GroupStart::now()},
                         [](const Delivery&) {}};
  EXPECT_EQ(w.state(), WorkerState::kCreated);
  EXPECT_EQ(w.consumer(), "a name that is not kept inside");
}

TEST(WorkerCalls, AVectorOfWorkers) {
  const EventStream stream{ConnectionPool{}, "k"};
  const WorkerOptions options{.group = "billing", .group_start = GroupStart::beginning()};

  std::vector<std::unique_ptr<ConsumerWorker>> workers;
  for (int i = 0; i < 3; ++i) {
    workers.push_back(std::make_unique<ConsumerWorker>(stream, options, do_nothing));
  }
  EXPECT_NE(workers[0]->consumer(), workers[1]->consumer());
}

TEST(WorkerCalls, AGroupOfWorkers) {
  const EventStream stream{ConnectionPool{}, "k"};
  const WorkerGroup one_handler{
      stream, {.group = "billing", .group_start = GroupStart::beginning()}, 4, do_nothing};
  EXPECT_EQ(one_handler.size(), 4U);

  const WorkerOptions options{.group = "billing", .group_start = GroupStart::beginning()};
  const WorkerGroup one_for_each{stream, options, 4,
                                 [] { return [calls = 0](const Delivery&) mutable { ++calls; }; }};
  EXPECT_EQ(one_for_each.state(), WorkerState::kCreated);

  const WorkerGroup of_batches{
      stream, options, 4, BatchHandler{[](std::span<const Delivery>) { return Verdict::ack(); }}};
  EXPECT_NE(of_batches[0].consumer(), of_batches[3].consumer());
}

TEST(WorkerCalls, AHandlerThatReturnsNothingAcknowledges) {
  EXPECT_EQ(verdict([](const Delivery&) {}), kAck);
}

TEST(WorkerCalls, AHandlerThatReturnsAVerdict) {
  EXPECT_EQ(verdict([](const Delivery&) { return Verdict::leave_pending(); }), kLeavePending);
  EXPECT_EQ(verdict([](const Delivery& d) {
              return d.attempt > 3 ? Verdict::leave_pending() : Verdict::retry();
            }),
            kRetry);
}

TEST(WorkerCalls, AGenericLambda) {
  EXPECT_EQ(verdict([](const auto& delivery) {
              return delivery.attempt == 1 ? Verdict::ack() : Verdict::retry();
            }),
            kAck);
}

TEST(WorkerCalls, AFunction) {
  EXPECT_EQ(verdict(retry_always), kRetry);
  EXPECT_EQ(verdict(&retry_always), kRetry);
  EXPECT_EQ(verdict(do_nothing), kAck);
}

TEST(WorkerCalls, AHandlerThatOnlyMoves) {
  auto text = std::make_unique<std::string>("mine");
  EXPECT_EQ(verdict([text = std::move(text)](const Delivery&) {
              return *text == "mine" ? Verdict::ack() : Verdict::retry();
            }),
            kAck);
}

TEST(WorkerCalls, AHandlerWithAStateOfItsOwn) {
  Handler count = [calls = 0](const Delivery&) mutable {
    return ++calls == 2 ? Verdict::ack() : Verdict::retry();
  };
  const Delivery delivery;
  EXPECT_EQ(count(delivery).kind(), kRetry);
  EXPECT_EQ(count(delivery).kind(), kAck);
}

TEST(WorkerCalls, AStdFunction) {
  const std::function<void(const Delivery&)> nothing = do_nothing;
  const std::function<Verdict(const Delivery&)> retry = retry_always;
  EXPECT_EQ(verdict(nothing), kAck);
  EXPECT_EQ(verdict(retry), kRetry);
}

TEST(WorkerCalls, AHandlerThatUsesItsOwnCopyOfTheStream) {
  const EventStream stream{ConnectionPool{}, "k"};
  const ConsumerWorker w{stream,
                         {.group = "billing", .group_start = GroupStart::beginning()},
                         [stream](const Delivery& d) { stream.add(d.entry); }};
  EXPECT_EQ(w.state(), WorkerState::kCreated);
}

TEST(WorkerCalls, WhatIsNoHandlerIsNone) {
  static_assert(!std::constructible_from<Handler, bool (*)(const Delivery&)>);
  static_assert(!std::constructible_from<Handler, int (*)(const Delivery&)>);
  static_assert(!std::constructible_from<Handler, std::future<void> (*)(const Delivery&)>);
  static_assert(!std::constructible_from<Handler, void (*)()>);
  static_assert(!std::constructible_from<Handler, void (*)(Delivery&)>);
  static_assert(std::constructible_from<Handler, void (*)(const Delivery&)>);
  static_assert(std::constructible_from<Handler, void (*)(Delivery)>);
}

TEST(WorkerCalls, AnEmptyFunctionIsRefusedWhenItIsGiven) {
  const auto expect_refused = [](auto function) {
    try {
      Handler{std::move(function)};
      ADD_FAILURE() << "accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_STREQ(error.what(), "the handler is an empty function");
    }
  };
  expect_refused(std::function<void(const Delivery&)>{});
  expect_refused(std::function<Verdict(const Delivery&)>{});
  expect_refused(static_cast<void (*)(const Delivery&)>(nullptr));
}

TEST(WorkerCalls, ADeliveryOfAUsersOwnTest) {
  const std::vector<OwnedEntry> owned{{.id = {1, 0}, .fields = {{"number", "4711"}}}};
  const auto b = EntryBatch::of(owned);
  const Delivery d{.entry = b[0], .attempt = 2};
  EXPECT_EQ(d.entry.at("number"), "4711");
  EXPECT_EQ(d.attempt, 2U);
  EXPECT_FALSE(d.reclaimed);
  EXPECT_FALSE(d.stop.stop_requested());
}

TEST(WorkerCalls, DeliveriesAreKeptAndAssignedWithTheirBatch) {
  const auto batch = EntryBatch::of(std::array{
      OwnedEntry{.id = {1, 0}, .fields = {{"i", "1"}}},
      OwnedEntry{.id = {2, 0}, .fields = {{"i", "2"}}},
  });
  std::vector<Delivery> deliveries;
  for (const auto& entry : batch) deliveries.push_back({.entry = entry});
  deliveries[0] = deliveries[1];
  EXPECT_EQ(deliveries[0].entry.at("i"), "2");
}

/// A trace context, as those of tracing libraries: attached while it lives.
struct Scope {
  explicit Scope(int& attached) : attached_{attached} { ++attached_; }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { --attached_; }
  int& attached_;
};

class Tracing : public Observer {
 public:
  void around_call(std::span<const Delivery> /*deliveries*/, Call& call) override {
    const Scope scope{attached};
    call();
  }
  int attached = 0;
};

TEST(WorkerCalls, AWorkerThatIsWatched) {
  const EventStream stream{ConnectionPool{}, "k"};
  const ConsumerWorker w{stream,
                         {.group = "billing",
                          .consumer = "alice",
                          .group_start = GroupStart::beginning(),
                          .key = [](const Entry& entry) { return std::string{entry.at("number")}; },
                          .observer = std::make_shared<Tracing>(),
                          .metrics = true},
                         [](const Delivery&) {}};
  EXPECT_FALSE(w.is_ready());
  EXPECT_TRUE(w.is_alive(5min));
  const WorkerStats stats = w.stats();
  EXPECT_EQ(stats.consumer, "alice");
  EXPECT_EQ(stats.age.quantile(0.99), std::nullopt);
  const GroupHealth health{.stream = "k", .group = "billing"};
  EXPECT_FALSE(prometheus_text({w.stats()}).empty());
  EXPECT_FALSE(prometheus_text({stats, w.stats()}, {health}).empty());
  EXPECT_TRUE(prometheus_text({}).empty());
}

}  // namespace
}  // namespace millrace
