#include "worker/keeper.hpp"

#include "core/waiting.hpp"
#include "millrace_scripts.hpp"
#include "net/deadline.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "worker/acknowledging.hpp"
#include "worker/intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::detail {
namespace {

/// A read that was about to be sent when it was to be ended is asked for again after this time.
constexpr Milliseconds kUnblockAgain{2};

/// How often that is done before the connection is broken off.
constexpr int kUnblockAttempts = 100;

/// A server that answers is not taken for silent before this time.
constexpr Milliseconds kShortestPatience{100};

/// A dead letter that was refused is tried again after this time.
constexpr Milliseconds kBuryAgain{1'000};

/// A consumer with nothing pending that has not been heard of for so many times `min_idle` is no
/// more.
constexpr int kStaleAfter = 10;

}  // namespace

template <typename Use>
void Keeper::with_server(Use&& use) {
  use(Server{.eval = [this](auto&&... args) { return eval(args...); },
             .pipeline =
                 [this](CallSpec spec, WriteRequest write, TakeReply take) {
                   spec.deadline = in_time();
                   return connection().pipeline(spec, write, take);
                 }});
}

TimePoint Keeper::in_time() const {
  // A server that is silent must not keep it for long from seeing that a lease has run out, be it
  // one that began meanwhile.
  const auto longest = std::min(shared_.pool.options().command_timeout,
                                std::max(shared_.config.min_idle / 3, kShortestPatience));
  return after(shared_.clock.now(), longest);
}

Reply Keeper::eval(const CallSpec& spec, const Script& script,
                   std::span<const std::string_view> keys, std::span<const std::string_view> args) {
  CallSpec timed = spec;
  timed.deadline = in_time();
  return connection().eval(timed, script, keys, args);
}

void Keeper::run(const std::stop_token& stop) {
  stop_ = stop;
  stale_at_ = shared_.clock.now() + kStaleAfter * shared_.config.min_idle;
  while (!is_over()) {
    {
      std::unique_lock lock{mutex_};
      due_ = next_due();
      const auto has_work = [this] { return woken_; };
      if (is_stopping_) {
        wait_by_clock(changed_, lock, due_, shared_.clock, has_work);
      } else {
        wait_by_clock(changed_, lock, stop_, due_, shared_.clock, has_work);
      }
      due_ = TimePoint::min();
      woken_ = false;
    }
    if (stop_.stop_requested() && !std::exchange(is_stopping_, true)) end_read();
    tick();
  }
  finish();
}

bool Keeper::is_over() const {
  std::lock_guard lock{mutex_};
  return work_ended_ && (abandoned_ || shared_.ledger.running().empty());
}

void Keeper::wake(TimePoint by) {
  std::lock_guard lock{mutex_};
  if (due_ <= by) return;
  woken_ = true;
  changed_.notify_all();
}

void Keeper::work_ended(bool connected) {
  std::lock_guard lock{mutex_};
  work_ended_ = true;
  was_connected_ = connected;
  woken_ = true;
  changed_.notify_all();
}

void Keeper::abandon() {
  std::lock_guard lock{mutex_};
  abandoned_ = true;
  woken_ = true;
  changed_.notify_all();
}

TimePoint Keeper::next_due() const {
  if (is_stopping_ && is_cut_off_ && shared_.ledger.running().empty()) return TimePoint::max();
  TimePoint due = std::min(renew_at_, stale_at_);
  if (!is_open_ && shared_.group.is_open()) due = TimePoint::min();
  if (const auto acks = shared_.ledger.acks_due_at()) due = std::min(due, *acks);
  if (shared_.ledger.settlements() > 0) due = std::min(due, settle_at_);
  due = std::min(due, unblock_at_);
  // Our own clock goes on where the server cannot be reached.
  return std::min(std::max(due, retry_at_), shared_.ledger.next_expiry());
}

void Keeper::tick() {
  expire();
  if (is_stopping_) gather_unstarted();
  const TimePoint now = shared_.clock.now();
  if (now < retry_at_) return;
  // A server that cannot be reached is not to hold up the end for longer than handlers do.
  if (is_stopping_ && is_cut_off_ && shared_.ledger.running().empty()) return;
  try {
    if (!is_open_) {
      // There is nothing to renew before the reader has made sure of the group and the name.
      is_open_ = shared_.group.is_open();
      renew_at_ = is_open_ ? now : TimePoint::max();
      connection();  // at once: a stop needs it as well
    }
    if (now >= renew_at_) renew();
    if (is_stopping_) release();
    if (now >= settle_at_) settle();
    flush_acks();
    end_late_read();
    if (now >= stale_at_) remove_stale_consumers();
    backoff_.reset();
    return;
  } catch (const Interrupted&) {
    is_cut_off_ = true;  // a stop came while there was no connection
    return;
  } catch (const Error& error) {
    note(error);
    // What it leads to is no master any more, or not sane.
    if (remedy_for(error) == Remedy::kReconnect) connection_.reset();
  } catch (const std::exception& error) {
    note(ProtocolError{error.what()});
  }
  is_cut_off_ = !connection_ || !connection_->is_open();
  retry_at_ = shared_.clock.now() + backoff_.next();
}

// ------------------------------------------------------------------------------------- leases

void Keeper::expire() {
  const auto expired = shared_.ledger.expire(shared_.clock.now());
  for (const StreamId id : expired) tell_of_lost_lease(shared_, id);
  // What was queued is let go of, and may yet be ours.
  if (!expired.empty()) others_.recover();
}

void Keeper::renew() {
  const auto run = [this](auto&&... args) { return eval(args...); };
  const auto held = shared_.ledger.counts_of(shared_.ledger.leases());
  for (std::size_t first = 0; first == 0 || first < held.size(); first += scripts::kMostIds) {
    std::vector<scripts::Hold> holds;
    for (std::size_t i = first; i < std::min(held.size(), first + scripts::kMostIds); ++i) {
      holds.push_back({held[i].first.id, held[i].second, held[i].second});
    }
    const TimePoint sent_at = shared_.clock.now();
    if (first > 0) {
      note_found(held, first, scripts::hold(run, shared_.config, holds), sent_at);
      continue;
    }
    const scripts::Renewal renewal = scripts::renew(run, shared_.config, holds);
    shared_.group.renewed(sent_at, renewal.mark, renewal.entries_added);
    note_found(held, first, renewal.found, sent_at);
    if (renewal.pending > shared_.ledger.known_pending(sent_at)) others_.recover();
  }
  is_cut_off_ = false;
  park_again();
  renew_at_ = shared_.clock.now() + shared_.config.lease_renew_every;
}

void Keeper::note_found(const std::vector<std::pair<Ticket, std::uint64_t>>& asked,
                        std::size_t first, const std::vector<scripts::Holding>& found,
                        TimePoint sent_at) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [ticket, deliveries] = asked[first + i];
    if (found[i] != scripts::Holding::kNotOurs) {
      shared_.ledger.renewed(ticket, sent_at);
      if (found[i] == scripts::Holding::kTrimmed) shared_.ledger.note_trimmed({&ticket.id, 1});
    } else if (shared_.ledger.lost(ticket, deliveries)) {
      tell_of_lost_lease(shared_, ticket.id);
    }
  }
}

void Keeper::park_again() {
  // A retry that is due later than in `min_idle` has to be kept from being idle for so long.
  const TimePoint now = shared_.clock.now();
  std::vector<scripts::Hold> holds;
  for (const auto& [entry, due] : shared_.ledger.parked()) {
    const bool lasts =
        left_until(due, now) + shared_.config.lease_renew_every <= shared_.config.min_idle;
    if (lasts) continue;
    holds.push_back({entry.id, entry.deliveries, entry.deliveries,
                     idle_until(due, now, shared_.config.min_idle)});
  }
  const auto found =
      scripts::hold([this](auto&&... args) { return eval(args...); }, shared_.config, holds);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] != scripts::Holding::kOurs) shared_.ledger.forget_parked(holds[i].id);
  }
}

// ------------------------------------------------------------------------- failures, acknowledged

void Keeper::settle() {
  if (shared_.ledger.settlements() == 0) return;
  // Leases come first: what takes longer than to the next renewal goes on after it.
  with_server([this](Server server) { settling_.settle(server, renew_at_); });
  is_cut_off_ = false;
  settle_at_ = TimePoint{};
  if (const auto& refusal = settling_.refusal()) {
    report(*refusal);  // no failure of the worker: the letter waits
    settle_at_ = shared_.clock.now() + kBuryAgain;
  }
}

void Keeper::flush_acks() {
  for (auto due = shared_.ledger.acks_due_at(); due && *due <= shared_.clock.now();
       due = shared_.ledger.acks_due_at()) {
    send_acks();
  }
}

void Keeper::send_acks() {
  Acknowledging acks{shared_, Ledger::kAckBatch};
  with_server([&](Server server) { acks.send(server.pipeline); });
  is_cut_off_ = false;
}

void Keeper::remove_stale_consumers() {
  const WorkerConfig& config = shared_.config;
  stale_at_ = shared_.clock.now() + kStaleAfter * config.min_idle;
  std::vector<ConsumerInfo> consumers;
  try {
    const Reply reply =
        connection().call({.command = "XINFO CONSUMERS", .key = config.key, .deadline = in_time()},
                          [&](RequestBuffer& request) {
                            commands::xinfo_consumers(request, config.key, config.group);
                          });
    consumers = decode::consumers(reply.root());
    for (const ConsumerInfo& consumer : consumers) {
      const bool is_stale = consumer.pending == 0 &&
                            consumer.idle > kStaleAfter * config.min_idle &&
                            consumer.name != config.consumer;
      if (!is_stale) continue;
      const std::array keys{std::string_view{config.key}};
      const std::array args{std::string_view{config.group}, std::string_view{consumer.name}};
      eval({.command = "XGROUP DELCONSUMER (by script)", .key = config.key}, kRemoveConsumerScript,
           keys, args);
    }
  } catch (const PermissionError&) {  // NOLINT(bugprone-empty-catch): then others may
  }
}

Connection& Keeper::connection() {
  // It may have lain idle for long: what the server closed meanwhile is not worth a lost request.
  if (!connection_ || !connection_->is_quiet()) {
    connection_.reset();
    connection_ = shared_.pool.connect(shared_.config.key, is_stopping_ ? std::stop_token{} : stop_,
                                       in_time());
  }
  return *connection_;
}

void Keeper::note(const Error& error) {
  if (remedy_for(error) == Remedy::kFail) return others_.fail(error);
  report(error);
}

void Keeper::report(const Error& error) {
  if (const auto line = faults_.report(error, shared_.clock.now())) {
    shared_.events.log(Observer::LogLevel::kWarning, *line);
  }
}

// --------------------------------------------------------------------------------------- ending

bool Keeper::unblock(std::uint64_t client) {
  const Reply reply = connection().call(
      {.command = "CLIENT UNBLOCK", .key = shared_.config.key},
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
    report(error);
  }
}

void Keeper::end_read() {
  shared_.gate.close();
  if (is_cut_off_) return others_.interrupt();
  for (int attempt = 0; attempt < kUnblockAttempts; ++attempt) {
    const auto client = shared_.gate.inside();
    if (!client) return;
    if (*client == 0) break;  // The user may not ask for the connection's number.
    try {
      unblock(*client);
    } catch (const Error& error) {
      is_cut_off_ = !connection_ || !connection_->is_open();
      note(error);
      break;
    }
    if (shared_.gate.wait_until_left(kUnblockAgain)) return;
  }
  others_.interrupt();
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
  const auto found = scripts::hold([this](auto&&... args) { return eval(args...); }, shared_.config,
                                   giving_back(shared_.config, unstarted_));
  auto unstarted = std::exchange(unstarted_, {});
  const std::size_t before = released_.size();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == scripts::Holding::kOurs) released_.push_back(unstarted[i].ticket.id);
    // Nobody else will ever have it.
    if (found[i] == scripts::Holding::kTrimmed) bury_trimmed(std::move(unstarted[i]));
  }
  count(shared_.counters.released, released_.size() - before);
}

void Keeper::finish() {
  is_stopping_ = true;
  gather_unstarted();
  try {
    if (!is_cut_off_) release();
    while (shared_.ledger.acks_due_at()) send_acks();
    if (!was_connected_ || is_cut_off_) return;
    with_server([this](Server server) { settling_.settle(server, TimePoint::max()); });
    scripts::leave([this](auto&&... args) { return eval(args...); }, shared_.config);
  } catch (const std::exception& error) {
    // What could not be acknowledged is delivered again.
    shared_.events.log(Observer::LogLevel::kWarning, error.what());
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): nobody asked
  }
}

}  // namespace millrace::detail
