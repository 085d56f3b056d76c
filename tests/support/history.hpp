#pragma once

#include <millrace/stream_id.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace::test {

/// A moment by CLOCK_MONOTONIC: the same clock in every process of one machine, which goes on while
/// a process is stopped.
using Moment = std::chrono::nanoseconds;
Moment now();

/// One thing that happened to one entry in one worker.
struct Record {
  enum class Event : char {
    kStarted = 'S',       ///< The handler was called.
    kSucceeded = 'E',     ///< It is about to return success.
    kFailed = 'F',        ///< It is about to fail, and wants to be called again.
    kRefused = 'P',       ///< It is about to say that the entry can never succeed.
    kAborting = 'A',      ///< It is about to end its process.
    kStopFired = 'T',     ///< Delivery::stop of its call has fired.
    kLeaseLost = 'L',     ///< Observer::on_lease_lost.
    kAcknowledged = 'K',  ///< Observer::on_acknowledged.
    kBuried = 'B',        ///< Observer::on_dead_letter.
  };

  Event event = Event::kStarted;
  Moment at{};
  std::string group{};
  StreamId id{};
  std::uint64_t attempt = 0;  ///< Of a call; else 0.
  bool reclaimed = false;
  std::optional<std::uint64_t> lane{};  ///< Of a call in a group that has lanes.

  friend bool operator==(const Record&, const Record&) = default;
};

std::string to_line(const Record& record);
/// nullopt: it is none.
std::optional<Record> record_of(std::string_view line);

/// Writes down what happens in one process, into a file that a SIGKILL cannot harm: each call is
/// one write() at the end of the file, so all that was written before the process died is there,
/// and of what it was writing at most a part of one line. Safe from any thread. Where it cannot
/// write, it ends the process with status 3: a history with a gap proves nothing.
class HistoryWriter {
 public:
  explicit HistoryWriter(const std::filesystem::path& file);
  HistoryWriter(const HistoryWriter&) = delete;
  HistoryWriter& operator=(const HistoryWriter&) = delete;
  ~HistoryWriter();

  void write(const Record& record) { write({&record, 1}); }
  void write(std::span<const Record> records);

 private:
  int file_;
};

/// The records of a file, by time. A last line without its end is what a killed process was
/// writing: it is left out. Throws std::runtime_error for any other line that is no record.
std::vector<Record> read_history(const std::filesystem::path& file);

}  // namespace millrace::test
