#include "worker/keeper.hpp"

#include "millrace_scripts.hpp"
#include "worker/acknowledging.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::detail {
namespace {

/// A read that was about to be sent when it was to be ended is asked for again after this time.
constexpr Milliseconds kUnblockAgain{2};

/// How often that is done before the connection is broken off.
constexpr int kUnblockAttempts = 100;

/// Longer than any handler runs, and not so long that reckoning with it overflows.
constexpr std::chrono::hours kUntilTheEnd{24 * 365};

}  // namespace

void Keeper::run(const std::stop_token& stop) {
  stop_ = stop;
  bool read_ended = false;
  for (;;) {
    {
      std::unique_lock lock{mutex_};
      due_ = next_due();
      const auto has_work = [this] { return woken_ || reader_ended_; };
      if (read_ended) {
        changed_.wait_until(lock, due_, has_work);
      } else {
        changed_.wait_until(lock, stop_, due_, has_work);
      }
      due_ = TimePoint::min();
      woken_ = false;
      if (reader_ended_) break;
    }
    if (stop_.stop_requested() && !std::exchange(read_ended, true)) end_read();
    tick();
  }
  finish();
}

void Keeper::wake(TimePoint by) {
  std::lock_guard lock{mutex_};
  if (due_ <= by) return;
  woken_ = true;
  changed_.notify_all();
}

void Keeper::reader_ended(bool connected) {
  std::lock_guard lock{mutex_};
  reader_ended_ = true;
  reader_was_connected_ = connected;
  changed_.notify_all();
}

TimePoint Keeper::next_due() const {
  TimePoint due = observe_at_;
  if (const auto acks = shared_.ledger.acks_due_at()) due = std::min(due, *acks);
  return std::max(due, retry_at_);
}

void Keeper::tick() {
  const TimePoint now = shared_.clock.now();
  if (now < retry_at_) return;
  try {
    flush_acks();
    if (now >= observe_at_) {
      shared_.group.observe(connection(stop_));
      is_cut_off_ = false;
      observe_at_ = now + shared_.config.min_idle / 3;
    }
    backoff_.reset();
    return;
  } catch (const Interrupted&) {
    // A stop came while there was no connection, and would end each further attempt at once. What
    // waits is sent by finish().
    retry_at_ = now + kUntilTheEnd;
    return;
  } catch (const Error& error) {
    note(error);
  } catch (const std::exception& error) {
    note(ProtocolError{error.what()});
  }
  is_cut_off_ = !connection_ || !connection_->is_open();
  retry_at_ = shared_.clock.now() + backoff_.next();
}

void Keeper::flush_acks() {
  for (auto due = shared_.ledger.acks_due_at(); due && *due <= shared_.clock.now();
       due = shared_.ledger.acks_due_at()) {
    send_acks(connection(stop_));
  }
}

void Keeper::send_acks(Connection& to) {
  Acknowledging acks{shared_, Ledger::kAckBatch};
  acks.send([&](auto&&... args) { return to.pipeline(args...); });
  is_cut_off_ = false;
}

Connection& Keeper::connection(const std::stop_token& stop) {
  // It may have lain idle for long: what the server closed meanwhile is not worth a lost request.
  if (!connection_ || !connection_->is_quiet()) {
    connection_.reset();
    connection_ = shared_.pool.connect(shared_.config.key, stop);
  }
  return *connection_;
}

void Keeper::note(const Error& error) {
  if (const auto line = faults_.report(error, shared_.clock.now())) {
    shared_.events.log(Observer::LogLevel::kWarning, *line);
  }
}

void Keeper::end_read() {
  shared_.gate.close();
  for (int attempt = 0; attempt < kUnblockAttempts; ++attempt) {
    const auto client = shared_.gate.inside();
    if (!client) return;
    // Without the number of its connection, or a way to the server, it can only be broken off. A
    // connection of our own that the server closed, or that was not made yet, is made now: the one
    // that reads has been, too.
    if (*client == 0 || is_cut_off_) break;
    try {
      connection({}).call({.command = "CLIENT UNBLOCK", .key = shared_.config.key},
                          [&](RequestBuffer& request) {
                            request.command("CLIENT", 3).arg("UNBLOCK").arg(*client);
                          });
    } catch (const Error& error) {
      is_cut_off_ = !connection_ || !connection_->is_open();
      note(error);
      break;
    }
    if (shared_.gate.wait_until_left(kUnblockAgain)) return;
  }
  reader_.interrupt();
}

void Keeper::finish() {
  try {
    while (shared_.ledger.acks_due_at()) {
      send_acks(connection({}));
    }
    if (!reader_was_connected_ || is_cut_off_) return;
    const std::array keys{std::string_view{shared_.config.key}};
    const std::array args{std::string_view{shared_.config.group},
                          std::string_view{shared_.config.consumer}};
    connection({}).eval({.command = "XGROUP DELCONSUMER (by script)", .key = shared_.config.key},
                        kRemoveConsumerScript, keys, args);
  } catch (const std::exception& error) {
    // What could not be acknowledged is delivered again.
    shared_.events.log(Observer::LogLevel::kWarning, error.what());
  } catch (const Interrupted&) {  // NOLINT(bugprone-empty-catch): nobody asked
  }
}

}  // namespace millrace::detail
