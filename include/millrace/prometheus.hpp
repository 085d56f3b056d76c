#pragma once

#include <millrace/export.hpp>
#include <millrace/health.hpp>
#include <millrace/worker_stats.hpp>

#include <string>
#include <vector>

namespace millrace {

/// Numbers as Prometheus reads them (text exposition format 0.0.4, `text/plain; version=0.0.4`).
///
/// Metrics are called millrace_worker_…, millrace_group_… and millrace_consumer_…, with labels
/// `stream`, `group` and `consumer`; times are in seconds. What is unknown is left out. Bytes of a
/// name that are no UTF-8, and control characters, are shown as `\xHH`. Of two workers or groups
/// with the same labels the later counts. No I/O: serve the text as you like.
///
///     prometheus_text({worker.stats()}, {orders.group_health("billing")})
MILLRACE_EXPORT std::string prometheus_text(const std::vector<WorkerStats>& workers,
                                            const std::vector<GroupHealth>& groups = {});

}  // namespace millrace
