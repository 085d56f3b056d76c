#pragma once

#include <millrace/stream_id.hpp>

#include "support/history.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace millrace::test {

/// What one process with workers did, and what was done to it.
struct ProcessHistory {
  /// SIGSTOP to SIGCONT.
  struct Freeze {
    Moment from{};
    std::optional<Moment> to{};  ///< None: it was never continued.
  };

  std::string name{};
  std::vector<Record> records{};  ///< By time.
  std::vector<Freeze> freezes{};
  std::optional<Moment> killed{};  ///< Just before SIGKILL was sent.
};

/// All that is known of a run when it is over, to be judged.
struct Evidence {
  using GroupAndId = std::pair<std::string, StreamId>;

  std::vector<std::string> groups{};
  std::set<StreamId> entries{};      ///< What is in the stream.
  std::set<StreamId> poison{};       ///< Of these, those that no handler can handle.
  std::vector<StreamId> appended{};  ///< Of which the server said that it has them.
  std::vector<ProcessHistory> processes{};
  std::vector<GroupAndId> dead_letters{};  ///< In their stream.
  std::vector<GroupAndId> pending{};
  /// Groups, and consumers of theirs that are no worker's.
  std::vector<std::pair<std::string, std::string>> stale_consumers{};
  std::uint64_t max_deliveries = 5;
  /// How late a worker may hear that its lease is lost: only that of a machine which is too busy to
  /// run it. Far less than `min_idle`.
  Moment grace = std::chrono::milliseconds{1'000};
};

struct Violation {
  enum class Kind : std::uint8_t {
    kAppendLost,          ///< Appended, by the server's own word, and not in the stream.
    kLost,                ///< Neither handled nor dead-lettered in a group.
    kTwiceAtOnce,         ///< Handled twice at once while the lease was held.
    kOutOfOrder,          ///< Not in the order of its lane.
    kAckedBeforeSuccess,  ///< Acknowledged by a worker whose handler had not succeeded.
    kTooManyStarts,       ///< Handled more often than `max_deliveries`.
    kPoisonNotDeadLettered,
    kDeadLetteredTwice,
    kHealthyDeadLettered,  ///< A dead letter of an entry that no handler refused for good.
    kPending,              ///< Still pending in the end.
    kStaleConsumer,        ///< A consumer that is no worker's, in the end.
  };

  Kind kind{};
  std::string group{};
  StreamId id{};  ///< 0-0 for a consumer.
  std::string what{};
};

std::string to_string(Violation::Kind kind);

/// Everything in the evidence that must not be.
///
/// Handled twice at once: two calls for one entry in one group of which the second began while the
/// first had not ended (by a record, or by the death of its process). In one process that is always
/// wrong. Across processes it is not
///  - if the first call's process was told in time that its lease is gone: Delivery::stop fired, or
///    on_lease_lost was called, before the second began or at most `grace` later;
///  - or if the first call's process was stopped by SIGSTOP when the second began, or had been
///    continued at most `grace` before that: it could not hear of it.
///
/// Out of order: within one process, one group and one lane
///  - two calls at once;
///  - an entry that was not pending before (Record::reclaimed) after one with a higher id that was
///    not pending before either;
///  - any entry while one with a lower id waits for its retry: from a failed call on, until the
///    next call for it, its dead letter, or the loss of its lease, told at most `grace` later.
///
/// Lost: no call for it ended in success, and it has no dead letter.
std::vector<Violation> violations(const Evidence& evidence);

/// What happened, to be told.
struct CallCounts {
  std::size_t calls = 0, succeeded = 0, failed = 0, aborted = 0, cut_short = 0;
  std::size_t reclaimed = 0;  ///< Calls for entries that had been pending before.
  std::size_t leases_lost = 0;
  std::size_t handled_again = 0;  ///< Successes beyond the first of an entry in a group.
  std::size_t overlapping = 0;    ///< Calls at once for one entry whose lease had been lost.
};
CallCounts count_calls(const Evidence& evidence);

}  // namespace millrace::test
