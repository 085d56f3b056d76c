#pragma once

#include <millrace/entry.hpp>
#include <millrace/stream_id.hpp>

#include "core/clock.hpp"

#include <cstddef>
#include <map>
#include <vector>

namespace millrace::detail {

/// Entries that did not arrive in time even when they were asked for alone. They are left out of
/// pages, twice as long each time, or they would keep all others waiting for ever. Not for two
/// threads at once.
class Oversized {
 public:
  /// `first` is how long they are left out the first time.
  explicit Oversized(Milliseconds first) : first_{first} {}

  /// It did not arrive.
  void add(StreamId id, TimePoint now);

  /// A page did not arrive: what it may have brought of these is left out again. False: nothing.
  bool blame(TimePoint now);

  /// Not to be asked for now.
  std::vector<StreamId> left_out(TimePoint now) const;

  /// They did arrive.
  void forget(const EntryBatch& entries);
  void clear() { waiting_.clear(); }

  /// Of more than so many, those that are due soonest are forgotten.
  static constexpr std::size_t kMost = 64;

 private:
  struct Wait {
    TimePoint until{};
    Milliseconds length{};
  };

  const Milliseconds first_;
  std::map<StreamId, Wait> waiting_;
};

}  // namespace millrace::detail
