#pragma once

#include "core/function_ref.hpp"
#include "net/connection.hpp"
#include "worker/ledger.hpp"
#include "worker/scripts.hpp"
#include "worker/shared.hpp"

#include <optional>
#include <vector>

namespace millrace::detail {

/// Where commands go: a Connection, or one that a Pool lends for each.
struct Server {
  scripts::Eval eval;
  FunctionRef<PipelineResult(const CallSpec&, WriteRequest, TakeReply)> pipeline;
};

/// Does on the server what the failures of handlers ask for: parks retries, writes dead letters.
class Settling {
 public:
  explicit Settling(const Shared& shared) : shared_{shared} {}

  /// What waits, until `until`. Throws what breaks the connection, and what a server answers but
  /// for the refusal of a dead letter. What could not be done waits again.
  void settle(Server server, TimePoint until);

  /// Why the last dead letter that was tried could not be written: the others wait with it.
  const std::optional<Error>& refusal() const noexcept { return refusal_; }
  /// Something waits for the reply to a read that has brought it again, which is on its way.
  bool is_early() const noexcept { return is_early_; }

 private:
  void park(Server server, std::vector<Settlement> parks);
  void bury(Server server, Settlement burial);
  void wait_for_count(Settlement&& settlement);
  scripts::Buried write(Server server, const Settlement& burial);
  /// Why nothing is to be written yet, or at all.
  std::optional<scripts::Buried> obstacle_to(Server server, const Settlement& burial);
  void write_large(Server server, const Settlement& burial);
  void tell_of(const Settlement& burial);

  const Shared& shared_;
  std::optional<Error> refusal_{};
  bool is_early_ = false;
};

/// Where a retry that is due then stands: idle for so long that a peer finds it at that time.
Milliseconds idle_until(TimePoint due, TimePoint now, Milliseconds min_idle);

}  // namespace millrace::detail
