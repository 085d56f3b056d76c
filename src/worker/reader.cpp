#include "worker/reader.hpp"

#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/server_error.hpp"
#include "worker/acknowledging.hpp"
#include "worker/intake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace millrace::detail {
namespace {

/// Where only people can help, asking more often would not.
constexpr Milliseconds kSlowPause{5'000};

}  // namespace

Reader::Reader(const Shared& shared, Handling& handling, std::function<void(TimePoint)> acks_due)
    : shared_{shared},
      config_{shared.config},
      handling_{handling},
      acks_due_{std::move(acks_due)},
      page_size_{std::min(config_.prefetch, scripts::kMostIds)},
      oversized_{config_.min_idle},
      backoff_{config_.reconnect_min, config_.reconnect_max} {}

void Reader::run(const std::stop_token& stop) {
  stop_ = stop;
  while (!stop_.stop_requested() && shared_.status.state() != WorkerState::kFailed) {
    try {
      step();
    } catch (const Interrupted&) {
      // Only a stop interrupts; what the lost reply may have brought stays pending.
    } catch (const Error& error) {
      mend(error);
    } catch (const std::exception& error) {
      mend(ProtocolError{fmt::format("while reading '{}': {}", config_.key, error.what())});
    }
  }
  release_unstarted();
}

void Reader::step() {
  if (!connection_) connect();
  if (!group_is_open_) {
    shared_.group.open(*connection_);
    group_is_open_ = true;
  }
  if (group_is_missing_) remake_group();
  if (stop_.stop_requested() || wait_while_paused()) return;
  if (must_recover_) recover();
  if (!probing_) reap_if_due();
  if (!stop_.stop_requested()) read();
}

void Reader::connect() {
  connection_ = shared_.pool.connect(config_.key, stop_);
  must_recover_ = true;
  // From the beginning, but not where that would come to the same page too big once more.
  if (!page_timed_out_) recovered_to_ = StreamId{};
  count(shared_.counters.connections);
  shared_.events.tell([&](Observer& observer) { observer.on_connected(connection_->endpoint()); });
}

void Reader::remake_group() {
  // Once between two reads at full speed. A group that vanishes again and again is a fault.
  if (std::exchange(remade_since_read_, true)) pause_for(backoff_.next());
  if (stop_.stop_requested()) return;
  const Group::Remade remade = shared_.group.remake(*connection_);
  group_is_missing_ = false;
  if (remade.another_stream) {
    shared_.ledger.start_over();
    oversized_.clear();
  }
  cursor_ = recovered_to_ = StreamId{};
  shared_.events.log(
      Observer::LogLevel::kWarning,
      fmt::format(
          "group '{}' of '{}' was gone{}; {} to read after {}", config_.group, config_.key,
          remade.another_stream ? " with its stream" : "",
          remade.created ? "it has been made again" : "somebody made it again, I would have",
          remade.position.to_string()));
  shared_.events.tell([&](Observer& observer) { observer.on_group_recreated(remade.position); });
}

void Reader::recover() {
  const auto run = [this](auto&&... args) { return eval(args...); };
  do {
    const auto alone = next_alone();
    const auto own = in_page(
        [&](std::size_t count, std::span<const StreamId> left_out) {
          return scripts::recover(run, handling_.consumer(), recovered_to_, count, left_out);
        },
        alone);
    handle(hold_orphans(shared_, run, handling_.consumer(), own));
    recovered_to_ = own.next_cursor;
  } while (recovered_to_ != StreamId{} && !stop_.stop_requested());
  must_recover_ = false;
}

/// The entry that the next page of a recovery is going to be, where it will be one alone because
/// more did not arrive.
std::optional<StreamId> Reader::next_alone() {
  if (!page_timed_out_ || page_size_.get() > 1) return std::nullopt;
  const PendingQuery query{
      .start = RangeStart::after(recovered_to_), .count = 1, .consumer = config_.consumer};
  const Reply reply = connection_->call(
      {.command = "XPENDING", .key = config_.key, .stop = interrupted_.get_token()},
      [&](RequestBuffer& request) {
        commands::xpending_entries(request, config_.key, config_.group, query);
      });
  const auto pending = decode::pending_entries(reply.root());
  if (pending.empty()) return std::nullopt;
  return pending.front().id;
}

/// `alone` is the one entry that the page is, if that is known.
scripts::Taken Reader::in_page(AskForPage ask, std::optional<StreamId> alone) {
  const auto left_out = oversized_.left_out(shared_.clock.now());
  try {
    scripts::Taken page = ask(page_size_.get(), left_out);
    page_size_.arrived();
    page_timed_out_ = false;
    oversized_.forget(page.entries);
    return page;
  } catch (const TimeoutError&) {
    page_timed_out_ = true;
    const TimePoint now = shared_.clock.now();
    if (oversized_.blame(now)) throw;
    page_size_.timed_out();
    if (!alone) throw;
    oversized_.add(*alone, now);
    shared_.events.log(
        Observer::LogLevel::kWarning,
        fmt::format("entry {} of '{}' did not arrive within the time-out, not even when it was "
                    "asked for alone: it stays pending, and is asked for again later",
                    alone->to_string(), config_.key));
    throw;
  }
}

void Reader::reap_if_due() {
  if (config_.reap_every == Milliseconds{0}) return;
  const TimePoint now = shared_.clock.now();
  if (now >= next_sweep_) {
    sweeping_ = true;
    std::uniform_real_distribution<> jitter{0.8, 1.2};
    next_sweep_ =
        now + std::chrono::duration_cast<Milliseconds>(config_.reap_every * jitter(random_));
  }
  if (!sweeping_ && now < next_page_) return;
  next_page_ = now + config_.block;
  const auto run = [this](auto&&... args) { return eval(args...); };
  const auto taken = in_page([&](std::size_t count, std::span<const StreamId> left_out) {
    return scripts::take(run, handling_.consumer(), config_.min_idle, cursor_, count, left_out);
  });
  cursor_ = taken.next_cursor;
  if (cursor_ == StreamId{}) sweeping_ = false;
  handle(hold_taken(shared_, taken, now));
}

void Reader::read() {
  if (shared_.ledger.acks_failing()) flush_acks();
  Acknowledging acks{shared_, kMostAcks};
  const TimePoint sent_at = shared_.clock.now();
  const EntryBatch entries = read_new(acks);
  well();
  const auto batch = hold_new(shared_, entries, sent_at);
  // What was held when it came again may be let go of at this moment: then nobody would hold it.
  if (batch.size() < entries.size()) must_recover_ = true;
  handle(batch);
  if (acks.error()) acks.error()->raise();
}

EntryBatch Reader::read_new(Acknowledging& acks) {
  const ReadGate::Visit visit{shared_.gate, connection_->client_id()};
  if (!visit.is_allowed()) return {};
  const ReadOptions options{.count = config_.prefetch,
                            .block = probing_ || sweeping_ ? Milliseconds{0} : config_.block};
  Reply reply;
  // A server may start the block time anew when a peer wins the entry that woke it: hence twice.
  const PipelineResult result = connection_->pipeline(
      {.command = "XREADGROUP",
       .key = config_.key,
       .block = 2 * options.block,
       .stop = interrupted_.get_token()},
      [&](RequestBuffer& request) {
        acks.write(request);  // first: what stands behind a read that waits, waits with it
        commands::xreadgroup(request, config_.key, config_.group, config_.consumer, options);
      },
      [&](std::size_t index, Reply next) {
        if (index < acks.commands()) {
          acks.settle(next.root());
          acks.tell();  // now, since the read may wait for long
        } else {
          reply = std::move(next);
        }
      });
  if (result.error) result.error->raise();
  if (reply.root().is_error()) {
    server_error(reply.root().text(),
                 {.command = "XREADGROUP", .key = config_.key, .endpoint = connection_->endpoint()})
        .raise();
  }
  return decode::read(std::move(reply));
}

void Reader::handle(const std::vector<Work>& batch) {
  const auto run = [this](auto&&... args) { return eval(args...); };
  for (auto work = batch.begin(); work != batch.end(); ++work) {
    if (stop_.stop_requested()) return let_rest_go({work, batch.end()});
    auto result = Handling::Result::kNotStarted;
    try {
      result = handling_.handle(*work, run);
    } catch (...) {
      let_go(shared_, {work + 1, batch.end()});  // they come back by recovery
      must_recover_ = true;
      throw;
    }
    if (result == Handling::Result::kNotStarted) return let_rest_go({work, batch.end()});
    if (result != Handling::Result::kSucceeded) continue;
    const auto due = shared_.ledger.finish(work->ticket, shared_.clock.now());
    if (due) acks_due_(*due);
  }
}

void Reader::let_rest_go(std::span<const Work> rest) {
  const auto holds = let_go(shared_, rest);
  unstarted_.insert(unstarted_.end(), holds.begin(), holds.end());
}

void Reader::flush_acks() {
  Acknowledging acks{shared_, kMostAcks};
  acks.send([this](auto&&... args) { return connection_->pipeline(args...); });
}

Reply Reader::eval(const CallSpec& spec, const Script& script,
                   std::span<const std::string_view> keys, std::span<const std::string_view> args) {
  CallSpec interruptible = spec;
  interruptible.stop = interrupted_.get_token();
  interruptible.block = config_.block;  // payloads take their time
  return connection_->eval(interruptible, script, keys, args);
}

bool Reader::wait_while_paused() {
  std::unique_lock lock{pause_mutex_};
  if (!paused_) return false;
  lock.unlock();
  shared_.status.move_to(WorkerState::kPaused);
  lock.lock();
  pause_changed_.wait(lock, stop_, [this] { return !paused_; });
  probing_ = true;
  return true;
}

void Reader::set_paused(bool paused) {
  std::lock_guard lock{pause_mutex_};
  paused_ = paused;
  pause_changed_.notify_all();
}

void Reader::pause_for(Milliseconds pause) {
  std::unique_lock lock{pause_mutex_};
  pause_changed_.wait_for(lock, stop_, pause, [] { return false; });
}

void Reader::mend(const Error& error) {
  if (!connection_ || !connection_->is_open()) end_connection(error);
  // No read may take them along for long.
  if (const auto due = shared_.ledger.acks_due_at()) acks_due_(*due);
  switch (remedy_for(error)) {
    case Remedy::kNone:
      return;
    case Remedy::kRemakeGroup:
      if (config_.on_missing_group == OnMissingGroup::kFail) break;
      group_is_missing_ = true;
      probing_ = true;
      return;
    case Remedy::kReconnect:
      if (connection_) end_connection(error);
      return degrade(error, backoff_.next());
    case Remedy::kRetry:
      return degrade(error, backoff_.next());
    case Remedy::kRetrySlowly:
      return degrade(error, kSlowPause);
    case Remedy::kFail:
      break;
  }
  shared_.events.log(Observer::LogLevel::kError, error.what());
  shared_.status.fail(error);
}

void Reader::end_connection(const Error& error) {
  connection_.reset();
  shared_.events.tell([&](Observer& observer) { observer.on_connection_lost(error); });
}

void Reader::degrade(const Error& error, Milliseconds pause) {
  if (stop_.stop_requested()) return;
  probing_ = true;
  shared_.status.move_to(WorkerState::kDegraded);
  if (const auto line = faults_.report(error, shared_.clock.now())) {
    shared_.events.log(Observer::LogLevel::kWarning, *line);
  }
  pause_for(pause);
}

void Reader::well() {
  backoff_.reset();
  remade_since_read_ = false;
  if (!std::exchange(probing_, false)) return;
  shared_.status.move_to(WorkerState::kRunning);
  if (const auto line = faults_.recovered()) {
    shared_.events.log(Observer::LogLevel::kInfo, *line);
  }
}

void Reader::release_unstarted() {
  if (!connection_ || !connection_->is_open()) return;
  const auto run = [this](auto&&... args) { return eval(args...); };
  try {
    released_ = scripts::release(run, handling_.consumer(), config_.min_idle, unstarted_);
  } catch (const std::exception& error) {
    // Then peers take them when they have been idle for long enough.
    shared_.events.log(Observer::LogLevel::kWarning, error.what());
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): the same
  }
  count(shared_.counters.released, released_.size());
}

}  // namespace millrace::detail
