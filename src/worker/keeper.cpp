#include "worker/keeper.hpp"

#include "core/waiting.hpp"
#include "millrace_scripts.hpp"
#include "net/deadline.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "worker/acknowledging.hpp"

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
  TimePoint due = std::min(allowed(Duty::kRenew, renew_at_), stale_at_);
  if (!is_open_ && shared_.group.is_open()) due = TimePoint::min();
  if (const auto acks = shared_.ledger.acks_due_at()) {
    due = std::min(due, allowed(Duty::kAcknowledge, *acks));
  }
  if (shared_.ledger.settlements() > 0) due = std::min(due, allowed(Duty::kSettle, settle_at_));
  if (unseen_since_ && !shared_.gate.inside()) {
    due = std::min(due, allowed(Duty::kRelease, TimePoint::min()));
  }
  due = std::min(due, unblock_at_);
  // Our own clock goes on where the server cannot be reached.
  return std::min({std::max(due, retry_at_), shared_.ledger.next_expiry(), interrupt_at_});
}

void Keeper::tick() {
  expire();
  if (is_stopping_) {
    gather_unstarted();
    break_off_read();
  }
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
    if (now >= renew_at_) attempt(Duty::kRenew, [this] { renew(); });
    if (is_stopping_) {
      attempt(Duty::kRelease, [this] { release(); });
      if (unseen_since_ && !shared_.gate.inside()) {
        attempt(Duty::kRelease, [this] { give_back_unseen(); });
      }
    }
    if (now >= settle_at_) attempt(Duty::kSettle, [this] { settle(); });
    attempt(Duty::kAcknowledge, [this] { flush_acks(); });
    end_late_read();
    if (now >= stale_at_) remove_stale_consumers();
    is_locked_out_ = false;
    show_refusals();
    backoff_.reset();
    return;
  } catch (const Interrupted&) {
    is_cut_off_ = was_interrupted_ = true;  // a stop came while there was no connection
    return;
  } catch (const Error& error) {
    pause(error);
  } catch (const std::exception& error) {
    pause(ProtocolError{error.what()});
  }
}

void Keeper::pause(const Error& error) {
  note(error);
  const Remedy remedy = remedy_for(error);
  // What it leads to is no master any more, or not sane.
  if (remedy == Remedy::kReconnect) connection_.reset();
  is_cut_off_ = !connection_ || !connection_->is_open();
  if (is_cut_off_ && unseen_since_) others_.interrupt();
  is_locked_out_ =
      remedy == Remedy::kRetrySlowly && (!connection_ || error.code() == Error::Code::kAuth);
  retry_at_ = shared_.clock.now() + (is_locked_out_ ? kSlowPause : backoff_.next());
  show_refusals();
}

TimePoint Keeper::allowed(Duty duty, TimePoint due) const {
  const auto& until = refusals_.at(static_cast<std::size_t>(duty)).until;
  return until ? std::max(due, *until) : due;
}

void Keeper::attempt(Duty duty, FunctionRef<void()> work) {
  const TimePoint now = shared_.clock.now();
  if (allowed(duty, now) > now) return;
  const auto before = std::exchange(refusals(duty).until, std::nullopt);
  try {
    work();
  } catch (const NoGroupError& error) {
    refusals(duty).until = before;
    if (duty != Duty::kRenew) throw;
    // The reader makes it again. Until then nothing is leased, and nothing else waits.
    report(refusals(duty).faults, error);
    renew_at_ = now + std::min(kSlowPause, shared_.config.lease_renew_every);
  } catch (const Error& error) {
    // Where the server does not take the user at all there is nothing else to do either.
    const bool is_alone = remedy_for(error) == Remedy::kRetrySlowly && connection_ &&
                          error.code() != Error::Code::kAuth;
    if (!is_alone) {
      refusals(duty).until = before;
      throw;
    }
    refuse(duty, error);
  }
}

void Keeper::refuse(Duty duty, const Error& error) {
  report(refusals(duty).faults, error);
  if (remedy_for(error) != Remedy::kRetrySlowly) return;
  // Leases do not wait for longer than usual.
  const Milliseconds pause =
      duty == Duty::kRenew ? std::min(kSlowPause, shared_.config.lease_renew_every) : kSlowPause;
  refusals(duty).until = shared_.clock.now() + pause;
}

void Keeper::show_refusals() {
  const bool is_refused = std::any_of(refusals_.begin(), refusals_.end(),
                                      [](const Refusals& each) { return each.until.has_value(); });
  const bool was_hampered = std::exchange(is_hampered_, is_refused || is_locked_out_);
  if (is_hampered_ == was_hampered) return;
  shared_.status.set_hampered(Status::Part::kKeeping, is_hampered_);
  if (was_hampered) shared_.events.log(Observer::LogLevel::kInfo, "all is permitted again");
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
    if (found[i] == scripts::Holding::kCountedAnew) continue;  // when its reply has been taken
    if (found[i] == scripts::Holding::kGone && shared_.ledger.lost_if_expired(ticket)) continue;
    if (found[i] != scripts::Holding::kNotOurs) {
      shared_.ledger.renewed(ticket, sent_at);
      if (found[i] != scripts::Holding::kOurs) shared_.ledger.note_trimmed({&ticket.id, 1});
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
    const bool waits_on =
        found[i] == scripts::Holding::kOurs || found[i] == scripts::Holding::kCountedAnew;
    if (!waits_on) shared_.ledger.forget_parked({holds[i].id, holds[i].expected});
  }
}

// ------------------------------------------------------------------------- failures, acknowledged

void Keeper::settle() {
  if (shared_.ledger.settlements() == 0) return;
  // Leases come first: what takes longer than to the next renewal goes on after it.
  settle_until(allowed(Duty::kRenew, renew_at_));
  is_cut_off_ = false;
  settle_at_ = settling_.is_early() ? after(shared_.clock.now(), scripts::kAskAgain) : TimePoint{};
  if (const auto& refusal = settling_.refusal()) {
    settle_at_ = shared_.clock.now() + kBuryAgain;
    refuse(Duty::kSettle, *refusal);  // nothing else waits with the letter
  }
}

void Keeper::settle_until(TimePoint until) {
  with_server([&](Server server) { settling_.settle(server, until); });
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
  } catch (const PermissionError& error) {
    report(faults_, error);  // then others may
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
  report(faults_, error);
}

void Keeper::report(FaultLog& faults, const Error& error) {
  if (const auto line = faults.report(error, shared_.clock.now())) {
    shared_.events.log(Observer::LogLevel::kWarning, *line);
  }
}

}  // namespace millrace::detail
