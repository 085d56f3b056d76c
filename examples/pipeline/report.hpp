#pragma once

#include <millrace/stream_id.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "journal.hpp"

namespace pipeline {

/// Every entry that was appended, and the checksum of its fields.
using Appended = std::map<millrace::StreamId, std::uint64_t>;

/// What the workers of one group did, by their journals.
struct Tally {
  std::size_t processed = 0;   ///< Entries that a handler has had.
  std::size_t reclaimed = 0;   ///< Of these, taken over from somebody.
  std::size_t duplicates = 0;  ///< Times that an entry was handled again.
  std::size_t lost = 0;        ///< Appended, and never handled.
  std::size_t damaged = 0;     ///< Handled with other bytes than were appended, or never appended.
};

Tally tally(const Appended& appended, std::span<const Handled> handled);

/// How the run went.
struct Report {
  struct Group {
    std::string name{};
    Tally tally{};
    double seconds = 0;  ///< From the first append to its last acknowledgement.
  };

  std::size_t records = 0;
  std::size_t entries = 0;
  std::string killed{};  ///< The worker that was.
  std::size_t held = 0;  ///< Entries that it had not acknowledged then.
  std::vector<Group> groups{};
  std::size_t replayed = 0;  ///< Entries of the history that are byte-equal to their records.
  std::size_t trimmed = 0;
  double append_seconds = 0;

  /// Nothing is lost, damaged or left, and a worker was killed with entries in its hands.
  bool is_good() const;
  std::string table() const;
};

}  // namespace pipeline
