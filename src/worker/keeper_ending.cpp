#include "net/deadline.hpp"
#include "worker/intake.hpp"
#include "worker/keeper.hpp"

#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

namespace millrace::detail {
namespace {

/// A read that was about to be sent when it was to be ended is asked for again after this time.
constexpr Milliseconds kUnblockAgain{2};

/// The time of a delivery is that of the server's last look at its clock.
constexpr Milliseconds kServersTick{100};

/// How often that is done before the connection is broken off.
constexpr int kUnblockAttempts = 100;

}  // namespace

bool Keeper::unblock(std::uint64_t client) {
  const Reply reply = connection().call(
      {.command = "CLIENT UNBLOCK", .key = shared_.config.key, .deadline = in_time()},
      [&](RequestBuffer& request) { request.command("CLIENT", 3).arg("UNBLOCK").arg(client); });
  return reply.root().integer() == 1;
}

void Keeper::end_late_read() {
  // A read waits no longer than to the next retry that there was when it was sent. Calls on other
  // threads, of reap_idle_pending(), fail while it waits.
  unblock_at_ = TimePoint::max();
  if (is_stopping_ || !shared_.gate.is_endable()) return;
  const auto late = after(shared_.ledger.retry_due_at(), kLateRetry);
  const auto client = shared_.gate.inside_beyond(late);
  if (!client || *client == 0) return;
  try {
    if (!unblock(*client)) unblock_at_ = shared_.clock.now() + kUnblockAgain;
  } catch (const PermissionError& error) {
    shared_.gate.cannot_be_ended();
    report(faults_, error);
  }
}

void Keeper::end_read() {
  shared_.gate.close();
  auto read = shared_.gate.inside();
  if (was_interrupted_ && read) is_cut_off_ = false;  // the reader has found the way
  if (is_cut_off_) return others_.interrupt();
  for (int attempt = 0; attempt < kUnblockAttempts; ++attempt, read = shared_.gate.inside()) {
    if (!read) return;
    if (read->client_id == 0) break;  // The user may not ask for the connection's number.
    try {
      unblock(read->client_id);
    } catch (const Error& error) {
      is_cut_off_ = !connection_ || !connection_->is_open();
      note(error);
      break;
    }
    if (shared_.gate.wait_until_left(kUnblockAgain)) return;
  }
  if (!read) return;
  unseen_since_ = read->since;
  if (is_cut_off_) return others_.interrupt();
  interrupt_at_ = in_time();
  others_.hang_up();
}

void Keeper::break_off_read() {
  if (shared_.clock.now() < interrupt_at_) return;
  interrupt_at_ = TimePoint::max();
  // Somebody in between may have kept the end of the connection to himself.
  if (shared_.gate.inside()) others_.interrupt();
}

void Keeper::give_back_unseen() {
  // What was delivered after the read was sent, and is held by nobody here, came with it, and has
  // never been started.
  const WorkerConfig& config = shared_.config;
  StreamId last{};
  for (bool is_end = false; !is_end;) {
    const auto pending =
        scripts::list_pending(connection(), config, last, scripts::kMostIds,
                              {.command = "XPENDING", .key = config.key, .deadline = in_time()});
    is_end = pending.size() < scripts::kMostIds;
    if (!pending.empty()) last = pending.back().id;
    const TimePoint now = shared_.clock.now();
    std::vector<Pending> young;
    for (const PendingEntry& entry : pending) {
      const bool is_young = entry.idle && *entry.idle < config.min_idle &&
                            now - *entry.idle + kServersTick >= *unseen_since_;
      if (is_young && entry.deliveries == 1) young.push_back({entry.id, 1});
    }
    std::vector<Work> unseen;
    for (const Pending& orphan : shared_.ledger.orphans(young, now)) {
      unseen.push_back({.ticket = {.id = orphan.id}, .entry = Entry{orphan.id, {}, true}});
    }
    give_back(std::move(unseen));
  }
  unseen_since_.reset();
}

void Keeper::gather_unstarted() {
  auto works = shared_.ledger.close();
  unstarted_.insert(unstarted_.end(), std::make_move_iterator(works.begin()),
                    std::make_move_iterator(works.end()));
}

void Keeper::bury_trimmed(Work&& work) {
  if (!shared_.config.letters.enabled) return;
  const std::uint64_t attempts = work.reclaimed ? work.deliveries : 0;
  shared_.ledger.add_settlement({.kind = Settlement::Kind::kBury,
                                 .work = std::move(work),
                                 .attempts = attempts,
                                 .reason = "trimmed: deleted from the stream while it was held",
                                 .failed = std::chrono::system_clock::now(),
                                 .trimmed = true});
}

void Keeper::release() {
  if (unstarted_.empty()) return;
  give_back(unstarted_);
  unstarted_.clear();
}

void Keeper::give_back(std::vector<Work> works) {
  const auto found = scripts::hold([this](auto&&... args) { return eval(args...); }, shared_.config,
                                   giving_back(shared_.config, works));
  const std::size_t before = released_.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == scripts::Holding::kOurs) released_.push_back(works[i].ticket.id);
    // Nobody else will ever have it.
    const bool is_trimmed =
        found[i] == scripts::Holding::kTrimmed || found[i] == scripts::Holding::kGone;
    if (is_trimmed) bury_trimmed(std::move(works[i]));
  }
  count(shared_.counters.released, released_.size() - before);
}

void Keeper::finish() {
  is_stopping_ = true;
  gather_unstarted();
  if (was_interrupted_ && was_connected_) is_cut_off_ = false;  // the reader had found the way
  try {
    if (!is_cut_off_) {
      release();
      if (unseen_since_) give_back_unseen();
    }
    while (shared_.ledger.acks_due_at()) send_acks();
    if (!was_connected_ || is_cut_off_) return;
    settle_until(TimePoint::max());
    scripts::leave([this](auto&&... args) { return eval(args...); }, shared_.config);
  } catch (const std::exception& error) {
    // What could not be acknowledged is delivered again.
    shared_.events.log(Observer::LogLevel::kWarning, error.what());
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): nobody asked
  }
}

}  // namespace millrace::detail
