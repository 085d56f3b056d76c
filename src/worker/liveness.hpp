#pragma once

#include <millrace/observer.hpp>

#include "core/clock.hpp"
#include "net/deadline.hpp"
#include "worker/ledger.hpp"

#include <algorithm>

namespace millrace::detail {

/// See ConsumerWorker::is_alive(). `progress`: when a handler call last started or ended.
///
/// A call that starts is progress, or what had waited long for its time (a retry) would count as
/// stuck while it is handled; handlers that never return cannot feign it, since they keep their
/// places. An entry that arrives is none: entries come as long as there is room.
inline bool is_alive(WorkerState state, const Ledger::Unfinished& work, TimePoint progress,
                     TimePoint now, Milliseconds within) {
  if (state == WorkerState::kFailed) return false;
  auto since = work.running;
  // While the server is away, what could start may have to ask the server first.
  if (state != WorkerState::kDegraded && work.startable) {
    since = std::min(since.value_or(*work.startable), *work.startable);
  }
  return !since || now <= after(std::max(*since, progress), within);
}

}  // namespace millrace::detail
