#pragma once

#include <millrace/stream_info.hpp>
#include <millrace/stream_options.hpp>

#include "net/connection.hpp"
#include "worker/config.hpp"

#include <mutex>
#include <optional>
#include <vector>

namespace millrace::detail {

/// The consumer group, and how to make it again without losing anything. Safe from any thread.
///
/// The low-water mark is an id up to which the whole group was done when it was read: just before
/// its lowest pending entry, or where it had read to. A group that is made again there delivers
/// everything that was not done; an old mark only repeats.
class Group {
 public:
  explicit Group(const WorkerConfig& config) : config_{config} {}

  /// Makes the group, and the stream, if they are missing. That is not needed where they are there,
  /// so neither is the permission, nor the memory.
  void open(Connection& connection);

  /// Reads the low-water mark. What the user may not ask for is left unknown; other errors throw.
  void observe(Connection& connection);

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
  bool create(Connection& connection, const GroupStart& start) const;
  /// False: it was there, or a peer was first.
  bool ensure(Connection& connection, const GroupStart& start) const;
  bool is_there(Connection& connection) const;
  std::optional<StreamId> position_in(const std::vector<GroupInfo>& groups) const;
  std::optional<StreamInfo> stream_info(Connection& connection) const;
  bool is_the_same_stream(Connection& connection, const StreamInfo& now) const;

  const WorkerConfig& config_;
  mutable std::mutex mutex_;
  std::optional<StreamId> mark_{};
  StreamId last_seen_{};
  std::optional<std::uint64_t> entries_added_{};
};

}  // namespace millrace::detail
