#pragma once

#include <millrace/consumer_worker.hpp>

#include "support/wait_until.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace millrace::test {

/// What handlers were called with. May be shared by several workers; must outlive them.
class Journal {
 public:
  struct Call {
    StreamId id{};
    std::uint64_t attempt = 0;
    bool reclaimed = false;
    std::string consumer{};
  };

  using Then = std::function<Verdict(const Delivery&)>;

  /// A handler that writes down each call, does `then`, and writes down that it came back.
  Handler handler(Then then = [](const Delivery&) { return Verdict::ack(); }) {
    return [this, then = std::move(then)](const Delivery& delivery) {
      const Inside inside{*this, delivery};
      return then(delivery);
    };
  }

  /// In the order in which the calls began.
  std::vector<Call> calls() const {
    const std::lock_guard lock{mutex_};
    return calls_;
  }
  std::size_t size() const { return calls().size(); }
  std::vector<StreamId> ids() const {
    std::vector<StreamId> ids;
    for (const Call& call : calls()) ids.push_back(call.id);
    return ids;
  }
  std::vector<Call> calls_for(StreamId id) const {
    std::vector<Call> calls = this->calls();
    std::erase_if(calls, [id](const Call& call) { return call.id != id; });
    return calls;
  }

  /// Entries of `ids` for which no call has returned or thrown.
  std::vector<StreamId> missing(std::span<const StreamId> ids) const {
    const std::lock_guard lock{mutex_};
    std::vector<StreamId> missing;
    std::copy_if(ids.begin(), ids.end(), std::back_inserter(missing),
                 [this](StreamId id) { return !done_.contains(id); });
    return missing;
  }
  [[nodiscard]] bool wait_for(std::span<const StreamId> ids,
                              std::chrono::milliseconds deadline = kGenerous) const {
    // To look for each of many takes long, and handlers wait meanwhile.
    return wait_until([&] { return done() >= ids.size() && missing(ids).empty(); }, deadline);
  }
  /// Entries of which a call has returned or thrown.
  std::size_t done() const {
    const std::lock_guard lock{mutex_};
    return done_.size();
  }
  [[nodiscard]] bool wait_for_calls(std::size_t count) const {
    return wait_until([&] { return size() >= count; });
  }

  /// Entries that were handled more than once.
  std::vector<StreamId> repeated() const {
    std::map<StreamId, std::size_t> counts;
    for (const Call& call : calls()) ++counts[call.id];
    std::vector<StreamId> ids;
    for (const auto& [id, count] : counts) {
      if (count > 1) ids.push_back(id);
    }
    return ids;
  }

  /// Entries for which two calls ran at once, in whatever worker.
  std::set<StreamId> overlapping() const {
    const std::lock_guard lock{mutex_};
    return overlapping_;
  }
  /// The most calls that ran at once.
  std::size_t most_at_once() const {
    const std::lock_guard lock{mutex_};
    return most_at_once_;
  }

 private:
  class Inside {
   public:
    Inside(Journal& journal, const Delivery& delivery)
        : journal_{journal}, id_{delivery.entry.id()} {
      const std::lock_guard lock{journal_.mutex_};
      journal_.calls_.push_back(
          {id_, delivery.attempt, delivery.reclaimed, std::string{delivery.consumer}});
      if (!journal_.running_.insert(id_).second) journal_.overlapping_.insert(id_);
      journal_.most_at_once_ = std::max(journal_.most_at_once_, journal_.running_.size());
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    ~Inside() {
      const std::lock_guard lock{journal_.mutex_};
      journal_.running_.erase(id_);
      journal_.done_.insert(id_);
    }

   private:
    Journal& journal_;
    StreamId id_;
  };

  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::set<StreamId> running_;
  std::set<StreamId> done_;
  std::set<StreamId> overlapping_;
  std::size_t most_at_once_ = 0;
};

}  // namespace millrace::test
