#pragma once

#include "unit/worker/fakes.hpp"
#include "worker/handling.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {

/// A Handling over a ledger, and a server that says of each entry that it is ours.
class HandlingTest : public ::testing::Test {
 protected:
  using Result = Handling::Result;
  using Then = std::function<Verdict(const Delivery&)>;
  using ThenAll = std::function<std::vector<Verdict>(std::span<const Delivery>)>;

  Handling handling(Then then = [](const Delivery&) { return Verdict::ack(); }) {
    return Handling{parts_.shared,
                    Handler{[this, then = std::move(then)](const Delivery& delivery) {
                      attempts_.push_back(delivery.attempt);
                      return then(delivery);
                    }},
                    [this](TimePoint due) { due_.push_back(due); }};
  }
  Handling handling_of_batches(ThenAll then) {
    return Handling{parts_.shared,
                    BatchHandler{[this, then = std::move(then)](std::span<const Delivery> batch) {
                      for (const Delivery& one : batch) attempts_.push_back(one.attempt);
                      batches_.push_back(batch.size());
                      return then(batch);
                    }},
                    [this](TimePoint due) { due_.push_back(due); }};
  }

  Work fresh(StreamId id = {1, 0}) {
    return running(parts_.ledger, work_of(id, parts_.clock.now()));
  }
  Work taken_over(std::uint64_t deliveries, StreamId id = {1, 0}) {
    return running(parts_.ledger, detail::taken_over(id, deliveries, parts_.clock.now()));
  }
  Work in_lane(Work work) {
    work.lane = 7;
    return running(parts_.ledger, work);
  }

  Result handle(Handling& handling, const Work& work, Handling::Acks* acks = nullptr) {
    return handling.handle({&work, 1}, eval_, acks).front();
  }

  /// What waits to be done on the server.
  std::vector<Settlement> settlements() { return parts_.ledger.take_settlements(100); }
  std::optional<Settlement> settlement() {
    auto all = settlements();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? std::nullopt : std::optional{std::move(all.front())};
  }

  Parts parts_;
  std::vector<std::uint64_t> attempts_;  // as the handler saw them
  std::vector<std::size_t> batches_;
  std::vector<TimePoint> due_;
  std::string answer_;  // of hold.lua; empty: all are ours
  bool eval_throws_ = false;
  std::function<void(std::size_t times)> when_asked_;
  ScriptedEval eval_{[this](const std::string&, const Words& args) {
    if (eval_throws_) throw IoError{"the connection is lost"};
    if (when_asked_) when_asked_(eval_.args.size());
    return answer_.empty() ? all_ours(args) : answer_;
  }};
};

}  // namespace millrace::detail
