#pragma once

#include "core/clock.hpp"
#include "net/pool.hpp"
#include "worker/company.hpp"
#include "worker/config.hpp"
#include "worker/events.hpp"
#include "worker/group.hpp"
#include "worker/ledger.hpp"
#include "worker/read_gate.hpp"
#include "worker/stats.hpp"
#include "worker/status.hpp"

namespace millrace::detail {

/// So late may a retry be: a read does not wait for longer beyond it.
inline constexpr Milliseconds kLateRetry{500};

/// What the threads of one worker share.
struct Shared {
  const WorkerConfig& config;
  Pool& pool;
  Ledger& ledger;
  Counters& counters;
  const Events& events;
  Status& status;
  Group& group;
  ReadGate& gate;
  Company& company;
  const Clock& clock;
};

/// A held entry has turned out to be a peer's, or our lease of it has run out.
inline void tell_of_lost_lease(const Shared& shared, StreamId id) {
  count(shared.counters.leases_lost);
  shared.events.tell([id](Observer& observer) { observer.on_lease_lost(id); });
}

}  // namespace millrace::detail
