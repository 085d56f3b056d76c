#include "support/invariants.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

namespace millrace::test {
namespace {

using Event = Record::Event;
using Kind = Violation::Kind;

struct Call {
  std::size_t process = 0;
  Moment started{};
  Moment ended = Moment::max();  ///< max(): nobody saw its end.
  std::optional<Event> outcome{};
  std::optional<Moment> told{};  ///< When it heard that its lease is gone.
  std::uint64_t attempt = 0;
  bool reclaimed = false;
};

/// All calls for one entry in one group.
using Calls = std::vector<Call>;
using CallsOfGroup = std::unordered_map<StreamId, Calls>;
using AllCalls = std::map<std::string, CallsOfGroup>;

bool ends_call(Event event) {
  return event == Event::kSucceeded || event == Event::kFailed || event == Event::kRefused ||
         event == Event::kAborting;
}

/// The last call of this process that has no end yet.
Call* open_call(Calls& calls, std::size_t process) {
  const auto found = std::find_if(calls.rbegin(), calls.rend(), [&](const Call& call) {
    return call.process == process && !call.outcome;
  });
  return found == calls.rend() ? nullptr : &*found;
}

void add_calls(AllCalls& all, const ProcessHistory& history, std::size_t process) {
  for (const Record& record : history.records) {
    Calls& calls = all[record.group][record.id];
    if (record.event == Event::kStarted) {
      calls.push_back({.process = process,
                       .started = record.at,
                       .ended = history.killed.value_or(Moment::max()),
                       .attempt = record.attempt,
                       .reclaimed = record.reclaimed});
      continue;
    }
    Call* const call = open_call(calls, process);
    if (call == nullptr) continue;
    if (ends_call(record.event)) {
      call->ended = record.at;
      call->outcome = record.event;
    } else if (record.event == Event::kStopFired || record.event == Event::kLeaseLost) {
      if (!call->told) call->told = record.at;
    }
  }
}

AllCalls calls_of(const Evidence& evidence) {
  AllCalls all;
  for (std::size_t i = 0; i < evidence.processes.size(); ++i) {
    add_calls(all, evidence.processes[i], i);
  }
  for (auto& [group, entries] : all) {
    for (auto& [id, calls] : entries) std::ranges::stable_sort(calls, {}, &Call::started);
  }
  return all;
}

bool could_not_hear(const ProcessHistory& process, Moment when, Moment grace) {
  return std::ranges::any_of(process.freezes, [&](const ProcessHistory::Freeze& freeze) {
    return freeze.from <= when && (!freeze.to || when <= *freeze.to + grace);
  });
}

/// True if `second` may have begun while `first` was running.
bool is_excused(const Evidence& evidence, const Call& first, const Call& second) {
  if (first.process == second.process) return false;
  if (first.told && *first.told <= second.started + evidence.grace) return true;
  return could_not_hear(evidence.processes[first.process], second.started, evidence.grace);
}

template <typename Use>
void for_each_overlap(const Calls& calls, Use&& use) {
  for (std::size_t second = 1; second < calls.size(); ++second) {
    for (std::size_t first = 0; first < second; ++first) {
      if (calls[second].started < calls[first].ended) use(calls[first], calls[second]);
    }
  }
}

/// Walks through what one process did in one group, lane by lane.
class LaneCheck {
 public:
  struct Fault {
    StreamId id{};
    Moment at{};
    std::string what{};
    std::optional<StreamId> overtaken{};  ///< Nothing is wrong if its lease was lost.
  };

  explicit LaneCheck(const Evidence& evidence) : evidence_{evidence} {}

  void look_at(const Record& record) {
    if (record.event == Event::kStarted) {
      if (record.lane) start(record);
      return;
    }
    const auto known = lane_of_.find(record.id);
    if (known == lane_of_.end()) return;
    Lane& lane = lanes_[known->second];
    if (ends_call(record.event)) {
      end(lane, record);
      return;
    }
    lane.waiting.erase(record.id);
    if (lane.running == record.id) lane.lost = true;
    std::erase_if(faults_, [&](const Fault& fault) {
      return fault.overtaken == record.id && fault.at + evidence_.grace >= record.at;
    });
  }

  const std::vector<Fault>& faults() const { return faults_; }

 private:
  struct Lane {
    std::optional<StreamId> running{};
    std::uint64_t attempt = 0;     ///< Of the running one.
    bool lost = false;             ///< The running one has lost its lease.
    StreamId newest{};             ///< Of those that were not pending before.
    std::set<StreamId> waiting{};  ///< For their retry.
  };

  void start(const Record& record) {
    Lane& lane = lanes_[*record.lane];
    lane_of_[record.id] = *record.lane;
    if (lane.running) {
      add(record, "while " + lane.running->to_string() + " of its lane was running");
    } else if (!record.reclaimed && record.id < lane.newest) {
      add(record, "after " + lane.newest.to_string() + " of its lane");
    } else if (!lane.waiting.empty() && *lane.waiting.begin() < record.id) {
      const StreamId overtaken = *lane.waiting.begin();
      add(record, "while " + overtaken.to_string() + " of its lane waited for its retry",
          overtaken);
    }
    lane.running = record.id;
    lane.attempt = record.attempt;
    lane.lost = false;
    lane.waiting.erase(record.id);
    if (!record.reclaimed) lane.newest = std::max(lane.newest, record.id);
  }

  void end(Lane& lane, const Record& record) const {
    if (lane.running != record.id) return;
    lane.running.reset();
    const bool again = record.event == Event::kFailed && lane.attempt < evidence_.max_deliveries;
    if (again && !lane.lost) lane.waiting.insert(record.id);
  }

  void add(const Record& record, std::string what, std::optional<StreamId> overtaken = {}) {
    faults_.push_back({record.id, record.at, std::move(what), overtaken});
  }

  const Evidence& evidence_;
  std::unordered_map<std::uint64_t, Lane> lanes_{};
  std::unordered_map<StreamId, std::uint64_t> lane_of_{};
  std::vector<Fault> faults_{};
};

class Check {
 public:
  explicit Check(const Evidence& evidence) : evidence_{evidence}, calls_{calls_of(evidence)} {}

  std::vector<Violation> operator()() {
    check_appends();
    for (const std::string& group : evidence_.groups) {
      check_outcomes(group);
      check_calls(group);
    }
    for (const ProcessHistory& process : evidence_.processes) {
      check_acknowledgements(process);
      check_lanes(process);
    }
    for (const auto& [group, id] : evidence_.pending) add(Kind::kPending, group, id, "");
    for (const auto& [group, consumer] : evidence_.stale_consumers) {
      add(Kind::kStaleConsumer, group, {}, consumer);
    }
    return std::move(found_);
  }

 private:
  void add(Kind kind, const std::string& group, StreamId id, std::string what) {
    found_.push_back({kind, group, id, std::move(what)});
  }

  const std::string& name_of(std::size_t process) const {
    return evidence_.processes[process].name;
  }

  const Calls& calls_for(const std::string& group, StreamId id) const {
    static const Calls none;
    const auto of_group = calls_.find(group);
    if (of_group == calls_.end()) return none;
    const auto found = of_group->second.find(id);
    return found == of_group->second.end() ? none : found->second;
  }

  void check_appends() {
    for (const StreamId id : evidence_.appended) {
      if (!evidence_.entries.contains(id)) add(Kind::kAppendLost, "", id, "");
    }
  }

  void check_outcomes(const std::string& group) {
    std::map<StreamId, std::size_t> letters;
    for (const auto& [of_group, id] : evidence_.dead_letters) {
      if (of_group == group) ++letters[id];
    }
    for (const auto& [id, count] : letters) {
      if (!evidence_.poison.contains(id))
        add(Kind::kHealthyDeadLettered, group, id, story(group, id));
      if (count > 1) add(Kind::kDeadLetteredTwice, group, id, std::to_string(count) + " letters");
    }
    for (const StreamId id : evidence_.entries) {
      const bool is_dead = letters.contains(id);
      if (evidence_.poison.contains(id) && !is_dead) {
        add(Kind::kPoisonNotDeadLettered, group, id, story(group, id));
      }
      const auto& calls = calls_for(group, id);
      const bool succeeded = std::ranges::any_of(
          calls, [](const Call& call) { return call.outcome == Event::kSucceeded; });
      if (!succeeded && !is_dead) add(Kind::kLost, group, id, story(group, id));
    }
  }

  void check_calls(const std::string& group) {
    const auto of_group = calls_.find(group);
    if (of_group == calls_.end()) return;
    for (const auto& [id, calls] : of_group->second) {
      const bool one_too_many = std::ranges::any_of(
          calls, [&](const Call& call) { return call.attempt > evidence_.max_deliveries; });
      if (one_too_many || calls.size() > evidence_.max_deliveries) {
        add(Kind::kTooManyStarts, group, id, story(group, id));
      }
      for_each_overlap(calls, [&, id = id](const Call& first, const Call& second) {
        if (!is_excused(evidence_, first, second)) {
          add(Kind::kTwiceAtOnce, group, id,
              "in " + name_of(first.process) + " and " + name_of(second.process) + ": " +
                  story(group, id));
        }
      });
    }
  }

  void check_acknowledgements(const ProcessHistory& process) {
    std::set<std::pair<std::string_view, StreamId>> succeeded;
    for (const Record& record : process.records) {
      if (record.event == Event::kSucceeded) succeeded.insert({record.group, record.id});
      if (record.event != Event::kAcknowledged || succeeded.contains({record.group, record.id})) {
        continue;
      }
      add(Kind::kAckedBeforeSuccess, record.group, record.id,
          "by " + process.name + ": " + story(record.group, record.id));
    }
  }

  void check_lanes(const ProcessHistory& process) {
    std::map<std::string, LaneCheck> groups;
    for (const Record& record : process.records) {
      groups.try_emplace(record.group, evidence_).first->second.look_at(record);
    }
    for (const auto& [group, lanes] : groups) {
      for (const LaneCheck::Fault& fault : lanes.faults()) {
        add(Kind::kOutOfOrder, group, fault.id,
            "in " + process.name + " at " + std::to_string(fault.at.count()) + ' ' + fault.what);
      }
    }
  }

  /// The calls for an entry, in words.
  std::string story(const std::string& group, StreamId id) const {
    std::string text;
    for (const Call& call : calls_for(group, id)) {
      text += (text.empty() ? "" : "; ") + name_of(call.process) + " attempt " +
              std::to_string(call.attempt) + " from " + std::to_string(call.started.count());
      if (call.ended != Moment::max()) text += " to " + std::to_string(call.ended.count());
      text += call.outcome ? std::string{" "} + static_cast<char>(*call.outcome) : " unfinished";
      if (call.told) text += " told " + std::to_string(call.told->count());
    }
    return text.empty() ? "never called" : text;
  }

  const Evidence& evidence_;
  const AllCalls calls_;
  std::vector<Violation> found_{};
};

}  // namespace

std::string to_string(Violation::Kind kind) {
  switch (kind) {
    case Kind::kAppendLost:
      return "append lost";
    case Kind::kLost:
      return "lost";
    case Kind::kTwiceAtOnce:
      return "handled twice at once";
    case Kind::kOutOfOrder:
      return "out of order in its lane";
    case Kind::kAckedBeforeSuccess:
      return "acknowledged before success";
    case Kind::kTooManyStarts:
      return "started too often";
    case Kind::kPoisonNotDeadLettered:
      return "poison without a dead letter";
    case Kind::kDeadLetteredTwice:
      return "dead-lettered twice";
    case Kind::kHealthyDeadLettered:
      return "dead-lettered although healthy";
    case Kind::kPending:
      return "still pending";
    case Kind::kStaleConsumer:
      return "stale consumer";
  }
  return "?";
}

std::vector<Violation> violations(const Evidence& evidence) { return Check{evidence}(); }

CallCounts count_calls(const Evidence& evidence) {
  CallCounts counts;
  for (const auto& [group, entries] : calls_of(evidence)) {
    for (const auto& [id, calls] : entries) {
      std::size_t successes = 0;
      for (const Call& call : calls) {
        ++counts.calls;
        counts.reclaimed += call.reclaimed ? 1 : 0;
        counts.cut_short += call.outcome ? 0 : 1;
        counts.aborted += call.outcome == Event::kAborting ? 1 : 0;
        counts.failed += call.outcome == Event::kFailed || call.outcome == Event::kRefused ? 1 : 0;
        successes += call.outcome == Event::kSucceeded ? 1 : 0;
      }
      counts.succeeded += successes;
      counts.handled_again += successes > 1 ? successes - 1 : 0;
      for_each_overlap(calls, [&](const Call&, const Call&) { ++counts.overlapping; });
    }
  }
  for (const ProcessHistory& process : evidence.processes) {
    counts.leases_lost += static_cast<std::size_t>(
        std::ranges::count(process.records, Event::kLeaseLost, &Record::event));
  }
  return counts;
}

}  // namespace millrace::test
