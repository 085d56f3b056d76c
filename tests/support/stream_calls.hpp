#pragma once

#include <millrace/event_stream.hpp>

#include "support/stream_test.hpp"

#include <functional>
#include <vector>

namespace millrace::test {

/// One of EventStream's calls, for tests that try them all.
struct NamedCall {
  const char* name;
  std::function<void(const EventStream&)> call;
};

inline constexpr StreamId kId{1, 0};

/// Everything that looks at a stream and changes nothing.
inline const std::vector<NamedCall> kLooks{
    {"read", [](const EventStream& s) { s.read(StreamId::min(), kAllNow); }},
    {"replay", [](const EventStream& s) { s.replay(); }},
    {"tail", [](const EventStream& s) { s.tail(); }},
    {"replay_all", [](const EventStream& s) { s.replay_all().begin(); }},
    {"follow", [](const EventStream& s) { s.follow(FollowStart::now()); }},
    {"next", [](const EventStream& s) { s.follow(FollowStart::beginning()).next(0ms); }},
    {"length", [](const EventStream& s) { s.length(); }},
    {"info", [](const EventStream& s) { s.info(); }},
    {"full_info", [](const EventStream& s) { s.full_info(); }},
    {"groups", [](const EventStream& s) { s.groups(); }},
    {"consumers", [](const EventStream& s) { s.consumers("g"); }},
    {"pending", [](const EventStream& s) { s.pending("g"); }},
    {"pending_entries", [](const EventStream& s) { s.pending_entries("g"); }},
};

/// Of a batch, the error of its one entry.
inline void raise_of(const std::vector<AddResult>& results) {
  if (results.at(0).error) results.at(0).error->raise();
}

/// Everything else.
inline const std::vector<NamedCall> kWrites{
    {"produce",
     [](const EventStream& s) {
       s.produce("t", {{"f", "v"}});
     }},
    {"add",
     [](const EventStream& s) {
       s.add({{"f", "v"}});
     }},
    {"produce_batch",
     [](const EventStream& s) {
       raise_of(s.produce_batch(std::vector<Event>{{"t", {{"f", "v"}}}}));
     }},
    {"add_batch",
     [](const EventStream& s) {
       raise_of(s.add_batch(std::vector<OwnedFields>{{{"f", "v"}}}));
     }},
    {"ensure_group", [](const EventStream& s) { s.ensure_group("g", GroupStart::now()); }},
    {"delete_group", [](const EventStream& s) { s.delete_group("g"); }},
    {"set_group_position",
     [](const EventStream& s) { s.set_group_position("g", GroupStart::now()); }},
    {"create_consumer", [](const EventStream& s) { s.create_consumer("g", "a"); }},
    {"consume", [](const EventStream& s) { s.consume("g", "a", kAllNow); }},
    {"consume_own_pending", [](const EventStream& s) { s.consume_own_pending("g", "a"); }},
    {"ack", [](const EventStream& s) { s.ack("g", {kId}); }},
    {"autoclaim_page", [](const EventStream& s) { s.autoclaim_page("g", "a"); }},
    {"autoclaim", [](const EventStream& s) { s.autoclaim("g", "a"); }},
    {"claim", [](const EventStream& s) { s.claim("g", "a", 0ms, {kId}); }},
    {"claim_ids", [](const EventStream& s) { s.claim_ids("g", "a", 0ms, {kId}); }},
    {"handover_pending", [](const EventStream& s) { s.handover_pending("g", "a", "b"); }},
    {"remove_consumer", [](const EventStream& s) { s.remove_consumer("g", "c"); }},
    {"trim", [](const EventStream& s) { s.trim(Trim::max_len(0).exactly()); }},
    {"trim_safely", [](const EventStream& s) { s.trim_safely(); }},
    {"erase", [](const EventStream& s) { s.erase({kId}); }},
    {"delete_stream", [](const EventStream& s) { s.delete_stream(); }},
    {"set_last_id", [](const EventStream& s) { s.set_last_id(kId); }},
};

}  // namespace millrace::test
