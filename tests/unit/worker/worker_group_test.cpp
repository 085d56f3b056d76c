#include <millrace/worker_group.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace millrace {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::MatchesRegex;

static_assert(!std::is_copy_constructible_v<WorkerGroup>);
static_assert(!std::is_move_constructible_v<WorkerGroup>);

/// Nothing here is started, so nothing connects.
const EventStream& stream() {
  static const EventStream stream{ConnectionPool{}, "orders"};
  return stream;
}

WorkerOptions options(std::string consumer = {}) {
  return {
      .group = "billing", .consumer = std::move(consumer), .group_start = GroupStart::beginning()};
}

void nothing(const Delivery&) {}

std::vector<std::string> names(const WorkerGroup& group) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < group.size(); ++i) names.push_back(group[i].consumer());
  return names;
}

template <typename Call>
std::string refusal(Call&& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "it was not refused";
}

TEST(WorkerGroupNames, AreNumberedFromOneWhereANameIsGiven) {
  EXPECT_THAT(names(WorkerGroup{stream(), options("billing"), 3, nothing}),
              ElementsAre("billing-1", "billing-2", "billing-3"));
  EXPECT_THAT(names(WorkerGroup{stream(), options("billing"), 1, nothing}),
              ElementsAre("billing-1"))
      << "the same name however many there are";
}

TEST(WorkerGroupNames, AreUniqueWhereNoneIsGiven) {
  const auto made = names(WorkerGroup{stream(), options(), 50, nothing});
  EXPECT_EQ(std::set<std::string>(made.begin(), made.end()).size(), 50U);
  EXPECT_THAT(made, ::testing::Each(MatchesRegex(".+-[0-9]+-[0-9a-f]+")));
}

TEST(WorkerGroupOptions, AreCheckedWhenItIsMade) {
  const auto refused = [](std::size_t workers) {
    return refusal([&] { WorkerGroup{stream(), options(), workers, nothing}; });
  };
  EXPECT_EQ(refused(0), "WorkerGroup: workers is 0: it must be from 1 to 1000");
  EXPECT_EQ(refused(1'001), "WorkerGroup: workers is 1001: it must be from 1 to 1000");
  EXPECT_EQ(refusal([] {
              WorkerGroup{stream(), {.group_start = GroupStart::now()}, 2, nothing};
            }),
            "WorkerOptions::group is empty: it must be given");
  EXPECT_EQ(refusal([] {
              WorkerGroup{stream(), options(), 2, std::function<Handler()>{}};
            }),
            "the function that makes handlers is empty");
  EXPECT_EQ(refusal([] {
              WorkerGroup{stream(), options(), 2, std::function<BatchHandler()>{}};
            }),
            "the function that makes handlers is empty");
  EXPECT_EQ(refusal([] {
              WorkerGroup{stream(), options(), 2, std::function<void(const Delivery&)>{}};
            }),
            "the handler is an empty function");
}

TEST(WorkerGroupHandlers, AreMadeOnceForEachWorkerWhereTheyAreMade) {
  int made = 0;
  const WorkerGroup group{stream(), options(), 4, [&made] {
                            ++made;
                            return [calls = 0](const Delivery&) mutable { ++calls; };
                          }};
  EXPECT_EQ(made, 4);
  const WorkerGroup of_batches{
      stream(), options(), 2, [&made] {
        ++made;
        return BatchHandler{[](std::span<const Delivery>) { return Verdict::ack(); }};
      }};
  EXPECT_EQ(made, 6);
}

TEST(WorkerGroupBeforeItsStart, IsCreatedAndEndsAtOnce) {
  WorkerGroup group{stream(), options(), 3, nothing};
  EXPECT_EQ(group.state(), WorkerState::kCreated);
  EXPECT_FALSE(group.failure().has_value());
  EXPECT_EQ(group.stats().delivered, 0U);
  EXPECT_FALSE(group.wait_ready(0ms));

  group.stop();
  EXPECT_EQ(group.state(), WorkerState::kStopped);
  EXPECT_THROW(group.start(), InvalidArgument);
  EXPECT_THROW(group.reap_idle_pending(), InvalidArgument);
}

}  // namespace
}  // namespace millrace
