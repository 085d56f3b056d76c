#pragma once

#include "support/invariants.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace millrace::test {

using namespace std::chrono_literals;

/// What a test says that a process did, in the group `g`.
class Told {
 public:
  explicit Told(std::string name) { history_.name = std::move(name); }

  Told& event(Record::Event event, Moment at, std::uint64_t id) {
    history_.records.push_back({.event = event, .at = at, .group = "g", .id = {id, 0}});
    return *this;
  }
  Told& start(Moment at, std::uint64_t id, std::uint64_t attempt = 1) {
    event(Record::Event::kStarted, at, id);
    Record& record = history_.records.back();
    record.attempt = attempt;
    record.reclaimed = attempt > 1;
    return *this;
  }
  /// Of the lane 7.
  Told& start_in_lane(Moment at, std::uint64_t id, std::uint64_t attempt = 1) {
    start(at, id, attempt);
    history_.records.back().lane = 7;
    return *this;
  }
  Told& succeed(Moment at, std::uint64_t id) { return event(Record::Event::kSucceeded, at, id); }
  Told& fail(Moment at, std::uint64_t id) { return event(Record::Event::kFailed, at, id); }
  Told& ack(Moment at, std::uint64_t id) { return event(Record::Event::kAcknowledged, at, id); }
  /// Start, success and acknowledgement.
  Told& handle(Moment at, std::uint64_t id) {
    return start(at, id).succeed(at + 1ms, id).ack(at + 2ms, id);
  }
  Told& freeze(Moment from, std::optional<Moment> to) {
    history_.freezes.push_back({from, to});
    return *this;
  }
  Told& kill(Moment at) {
    history_.killed = at;
    return *this;
  }

  operator ProcessHistory() const { return history_; }  // NOLINT(google-explicit-constructor)

 private:
  ProcessHistory history_{};
};

/// Of a run with the entries 1-0 to `<count>-0`, of which the first `poison` are poison.
inline Evidence evidence_of(std::uint64_t count, std::vector<ProcessHistory> processes,
                            std::uint64_t poison = 0) {
  Evidence evidence{.groups = {"g"}, .processes = std::move(processes)};
  for (std::uint64_t id = 1; id <= count; ++id) {
    evidence.entries.insert({id, 0});
    evidence.appended.push_back({id, 0});
    if (id <= poison) evidence.poison.insert({id, 0});
  }
  return evidence;
}

inline std::vector<std::string> names_of(const std::vector<Violation>& violations) {
  std::vector<std::string> names;
  for (const Violation& found : violations) {
    names.push_back(to_string(found.kind) + ' ' + found.id.to_string());
  }
  return names;
}

}  // namespace millrace::test
