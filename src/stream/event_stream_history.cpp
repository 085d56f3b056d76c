#include <millrace/event_stream.hpp>

#include "protocol/checks.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "stream/blocking_read.hpp"
#include "stream/stream_core.hpp"

#include <utility>

namespace millrace {

using detail::Repeat;
using detail::RequestBuffer;

namespace checks = detail::checks;
namespace commands = detail::commands;
namespace decode = detail::decode;

namespace {

/// Entries of one Follower::next().
constexpr std::size_t kFollowPage = 100;

}  // namespace

EntryBatch EventStream::read(StreamId after, const ReadOptions& options) const {
  return detail::blocking_read(*core_, "XREAD", Repeat::kSafe, options,
                               [&](RequestBuffer& request, const ReadOptions& now) {
                                 commands::xread(request, core_->key, after, now);
                               });
}

EntryBatch EventStream::replay(RangeStart start, RangeEnd end, std::size_t count) const {
  checks::count("count", count);
  if (commands::is_beyond_all_ids(start, end)) return {};
  return core_->ask(
      "XRANGE", Repeat::kSafe,
      [&](RequestBuffer& request) { commands::xrange(request, core_->key, start, end, count); },
      decode::entries);
}

EntryBatch EventStream::tail(std::size_t count) const {
  checks::count("count", count);
  return core_->ask(
      "XREVRANGE", Repeat::kSafe,
      [&](RequestBuffer& request) { commands::xrevrange(request, core_->key, {}, {}, count); },
      decode::entries);
}

ReplayRange EventStream::replay_all(RangeStart start, RangeEnd end, std::size_t page) const {
  checks::count("page", page);
  return ReplayRange{*this, start, end, page};
}

Follower EventStream::follow(FollowStart start) const {
  if (const auto id = start.id()) return Follower{*this, *id};
  // The last id there ever was, so that the deletion of the last entry does not matter.
  return Follower{*this, info().last_generated_id};
}

ReplayRange::ReplayRange(const EventStream& stream, RangeStart start, RangeEnd end,
                         std::size_t page)
    : stream_{stream}, next_{start}, end_{end}, page_{page} {}

ReplayRange::iterator ReplayRange::begin() {
  if (!started_) {
    fetch();
    started_ = true;
  }
  return iterator{this};
}

void ReplayRange::advance() {
  if (position_ + 1 != batch_.end()) {
    ++position_;
  } else if (finished_) {
    position_ = nullptr;
  } else {
    fetch();
  }
}

void ReplayRange::fetch() {
  EntryBatch batch = stream_.replay(next_, end_, page_);  // may throw: then nothing has changed
  finished_ = batch.size() < page_;
  if (!batch.empty()) next_ = RangeStart::after(batch.back().id());
  batch_ = std::move(batch);
  position_ = batch_.begin();  // nullptr if it is empty
}

EntryBatch Follower::next(std::chrono::milliseconds block, std::stop_token stop) {
  EntryBatch batch =
      stream_.read(position_, {.count = kFollowPage, .block = block, .stop = std::move(stop)});
  if (!batch.empty()) position_ = batch.back().id();
  return batch;
}

}  // namespace millrace
