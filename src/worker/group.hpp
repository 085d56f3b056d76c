#pragma once

#include <millrace/stream_info.hpp>
#include <millrace/stream_options.hpp>

#include "net/connection.hpp"
#include "worker/config.hpp"
#include "worker/scripts.hpp"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace millrace::detail {

/// The consumer group with its record, and how to make it again without losing anything. Safe from
/// any thread.
///
/// The low-water mark is an id up to which the whole group was done when it was read: just before
/// its lowest pending entry, or where it had read to. A group that is made again there delivers
/// everything that was not done; an old mark only repeats.
class Group {
 public:
  explicit Group(const WorkerConfig& config) : config_{config} {}

  /// Makes the group, and the stream, if they are missing, and takes the consumer's name. What is
  /// there need not be made, so neither is the permission needed, nor the memory. False: a worker
  /// of the same name may still run.
  bool open(Connection& connection);

  /// The worker's place in the record was renewed by a request sent at this time, which read these
  /// as well.
  void renewed(TimePoint sent_at, std::optional<StreamId> mark,
               std::optional<std::uint64_t> entries_added);
  TimePoint renewed_at() const;
  /// Renews the worker's place, at once. A reply that was long in coming leaves an old name.
  void renew(scripts::Eval eval, const Clock& clock);
  /// Somebody may have taken the consumer's name meanwhile: nothing is to be read or started by it
  /// before it is renewed.
  bool name_is_old(const Clock& clock) const {
    if (config_.token.empty()) return false;
    const TimePoint renewed = renewed_at();
    return renewed != TimePoint{} && clock.now() - renewed >= config_.min_idle / 2;
  }
  /// open() has succeeded.
  bool is_open() const { return renewed_at() != TimePoint{}; }

  /// An entry of this stream was delivered.
  void seen(StreamId id);

  /// What making the group again did.
  struct Remade {
    bool another_stream = false;  ///< Nothing of the old one counts any more.
    bool created = false;         ///< False: a peer was first.
    StreamId position{};          ///< It reads after this.
  };

  /// Makes a group again that is gone: at the beginning if the stream is another one, else at the
  /// low-water mark.
  Remade remake(Connection& connection);

 private:
  scripts::Opened run_open(Connection& connection, const std::optional<scripts::Remaking>& again);
  std::optional<StreamInfo> stream_info(Connection& connection) const;
  struct Record {
    std::optional<StreamId> mark{};
  };
  /// nullopt: there is none.
  std::optional<Record> record(Connection& connection) const;
  void note_added(std::optional<std::uint64_t> entries_added);  // with mutex_ held
  bool is_the_same_stream(Connection& connection, const StreamInfo& now) const;

  const WorkerConfig& config_;
  mutable std::mutex mutex_;
  std::string making_{};
  TimePoint renewed_at_{};
  std::optional<StreamId> mark_{};
  StreamId last_seen_{};
  std::optional<std::uint64_t> entries_added_{};  // To the stream that had our group.
};

}  // namespace millrace::detail
