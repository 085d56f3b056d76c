#pragma once

#include <millrace/event_stream.hpp>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace millrace::test {

using Ids = std::vector<StreamId>;

/// `1-0[f=v g=w] 2-0[deleted]`.
std::string text(const EntryBatch& batch);
std::string text(const Entry& entry);
std::string text(const OwnedEntry& entry);

/// `1-0 alice 1, 2-0 bob 3`: who owns which pending entry, and its delivery count.
std::string text(const std::vector<PendingEntry>& entries);
std::string pending_text(const EventStream& stream, std::string_view group);

/// Appends an entry with each of these ids and the field f=v.
void append(const EventStream& stream, const Ids& ids);

/// The error that `call` throws. Without one, or with one of another class, the test fails.
template <typename E, typename Call>
E thrown(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const E& error) {
    return error;
  }
  throw std::logic_error("the call was to throw, and did not");
}

}  // namespace millrace::test
