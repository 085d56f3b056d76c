#pragma once

#include <millrace/consumer_worker.hpp>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::test {

/// Writes down what a worker tells, for tests to look at from their own thread.
class RecordingObserver : public Observer {
 public:
  struct Line {
    LogLevel level;
    std::string text;
  };

  void on_log(LogLevel level, std::string_view line) override {
    note([&] { lines_.push_back({level, std::string{line}}); });
  }
  void on_state(WorkerState from, WorkerState to) override {
    note([&] { states_.emplace_back(from, to); });
  }
  void on_connected(std::string_view /*endpoint*/) override {
    note([&] { ++connected_; });
  }
  void on_connection_lost(const Error& error) override {
    note([&] { lost_.emplace_back(error.what()); });
  }
  void on_handler_exception(const Delivery& /*delivery*/, std::string_view what) override {
    note([&] { exceptions_.emplace_back(what); });
  }
  void on_acknowledged(std::span<const StreamId> ids, std::size_t pending) override {
    note([&] {
      acknowledged_.insert(acknowledged_.end(), ids.begin(), ids.end());
      pending_ += pending;
    });
  }
  void on_reclaimed(std::span<const StreamId> ids, std::span<const StreamId> deleted) override {
    note([&] {
      reclaimed_.insert(reclaimed_.end(), ids.begin(), ids.end());
      deleted_.insert(deleted_.end(), deleted.begin(), deleted.end());
    });
  }
  void on_dead_letter(const DeadLetter& letter) override {
    note([&] { dead_letters_.push_back(letter.entry_id); });
  }
  void on_lease_lost(StreamId id) override {
    note([&] { leases_lost_.push_back(id); });
  }
  void on_group_recreated(StreamId position) override {
    note([&] { recreated_.push_back(position); });
  }

  std::vector<Line> lines() const { return copy(lines_); }
  std::vector<std::pair<WorkerState, WorkerState>> states() const { return copy(states_); }
  std::size_t connected() const { return copy(connected_); }
  std::vector<std::string> connections_lost() const { return copy(lost_); }
  std::vector<std::string> exceptions() const { return copy(exceptions_); }
  std::vector<StreamId> acknowledged() const { return copy(acknowledged_); }
  std::size_t acknowledged_while_pending() const { return copy(pending_); }
  std::vector<StreamId> reclaimed() const { return copy(reclaimed_); }
  std::vector<StreamId> deleted() const { return copy(deleted_); }
  std::vector<StreamId> dead_letters() const { return copy(dead_letters_); }
  std::vector<StreamId> leases_lost() const { return copy(leases_lost_); }
  std::vector<StreamId> recreated() const { return copy(recreated_); }

  /// True if the worker has been in this state.
  bool saw(WorkerState state) const {
    const auto states = copy(states_);
    return std::any_of(states.begin(), states.end(),
                       [state](const auto& change) { return change.second == state; });
  }

  /// All lines, for a test that failed.
  std::string text() const {
    std::string text;
    for (const Line& line : lines()) text += line.text + '\n';
    return text;
  }

 private:
  template <typename Note>
  void note(Note&& note) {
    const std::lock_guard lock{mutex_};
    note();
  }
  template <typename T>
  T copy(const T& value) const {
    const std::lock_guard lock{mutex_};
    return value;
  }

  mutable std::mutex mutex_;
  std::vector<Line> lines_;
  std::vector<std::pair<WorkerState, WorkerState>> states_;
  std::size_t connected_ = 0;
  std::vector<std::string> lost_;
  std::vector<std::string> exceptions_;
  std::vector<StreamId> acknowledged_;
  std::size_t pending_ = 0;
  std::vector<StreamId> reclaimed_;
  std::vector<StreamId> deleted_;
  std::vector<StreamId> dead_letters_;
  std::vector<StreamId> leases_lost_;
  std::vector<StreamId> recreated_;
};

}  // namespace millrace::test
