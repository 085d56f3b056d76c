#pragma once

#include "worker_test.hpp"

#include <string_view>

namespace millrace::test {

/// Workers that take over what is idle when they are asked to.
class ReapOnDemandTest : public WorkerTest {
 protected:
  WorkerOptions on_demand() {
    WorkerOptions on_demand = options();
    on_demand.min_idle = 1h;
    on_demand.block = 50ms;
    on_demand.reap_every = 0ms;
    return on_demand;
  }

  void make_idle(const Ids& ids, std::string_view owner = "bob") {
    for (const StreamId id : ids) {
      raw()("XCLAIM", "s", "g", owner, 0, id, "IDLE", 7'200'000, "JUSTID");
    }
  }
  Ids left_by_bob(std::size_t count) {
    const Ids ids = append_ids(count);
    orphan("bob", count);
    make_idle(ids);
    return ids;
  }
};

}  // namespace millrace::test
