#pragma once

#include "support/entries.hpp"
#include "unit/worker/fakes.hpp"
#include "worker/ledger.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <vector>

namespace millrace::detail {

using test::Ids;

/// A ledger with room for four entries and 1,000 bytes, and a lease of 30 s.
class LedgerTest : public ::testing::Test {
 protected:
  using Lane = std::optional<std::size_t>;

  Work entry(StreamId id, Lane lane = {}) const {
    Work work = work_of(id, clock_.now());
    work.lane = lane;
    return work;
  }
  Ticket queued(StreamId id, Lane lane = {}) {
    Work work = entry(id, lane);
    EXPECT_TRUE(ledger_.hold(work));
    return work.ticket;
  }
  Ticket reserved(StreamId id, Lane lane = {}) {
    Work work = entry(id, lane);
    EXPECT_TRUE(ledger_.reserve(work));
    return work.ticket;
  }
  Work running(StreamId id, Lane lane = {}) { return detail::running(ledger_, entry(id, lane)); }
  Ticket done(StreamId id) {
    const Ticket ticket = running(id).ticket;
    ledger_.finish(ticket, clock_.now());
    return ticket;
  }
  void rest(const Work& work, Milliseconds pause) {
    ledger_.rest(work.ticket, clock_.now() + pause, WallTime{});
  }
  void parked(const Work& work, Milliseconds pause) {
    ledger_.fail({.kind = Settlement::Kind::kPark, .work = work, .due = clock_.now() + pause});
    for (const Settlement& one : ledger_.take_settlements(1)) ledger_.settled(one, true);
  }

  /// Starts all that can be started.
  Ids started() {
    Ids ids;
    while (const auto work = ledger_.next(clock_.now())) ids.push_back(work->ticket.id);
    return ids;
  }
  bool is_orphan(StreamId id) {
    const Pending pending{id, 2};
    return !ledger_.orphans({&pending, 1}, clock_.now()).empty();
  }
  bool can_be_held(StreamId id) {
    Work work = entry(id);
    return ledger_.hold(work);
  }

  test::ManualClock clock_;
  Ledger ledger_{{.prefetch = 4, .prefetch_bytes = 1'000, .min_idle = Milliseconds{30'000}}};
};

}  // namespace millrace::detail
