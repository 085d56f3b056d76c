#include "worker/oversized.hpp"

#include <algorithm>

namespace millrace::detail {
namespace {

/// A way that got wider is noticed after this time at the latest.
constexpr Milliseconds kLongest{std::chrono::hours{1}};

}  // namespace

void Oversized::add(StreamId id, TimePoint now) {
  if (waiting_.size() >= kMost && !waiting_.contains(id)) {
    waiting_.erase(std::min_element(waiting_.begin(), waiting_.end(), [](auto& a, auto& b) {
      return a.second.until < b.second.until;
    }));
  }
  waiting_.insert_or_assign(id, Wait{.until = now + first_, .length = first_});
}

bool Oversized::blame(TimePoint now) {
  bool any = false;
  for (auto& [id, wait] : waiting_) {
    if (wait.until > now) continue;
    wait.length = std::max(first_, std::min(2 * wait.length, kLongest));
    wait.until = now + wait.length;
    any = true;
  }
  return any;
}

std::vector<StreamId> Oversized::left_out(TimePoint now) const {
  std::vector<StreamId> ids;
  for (const auto& [id, wait] : waiting_) {
    if (wait.until > now) ids.push_back(id);
  }
  return ids;
}

void Oversized::forget(const EntryBatch& entries) {
  if (waiting_.empty()) return;
  for (const Entry& entry : entries) waiting_.erase(entry.id());
}

}  // namespace millrace::detail
