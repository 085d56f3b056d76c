#include "stream/producer_core.hpp"

#include <millrace/error.hpp>

#include "net/deadline.hpp"
#include "net/pool.hpp"
#include "protocol/checks.hpp"
#include "stream/producer_config.hpp"

#include <chrono>
#include <utility>

namespace millrace::detail {
namespace {

constexpr std::string_view kThisProducer = "this Producer";

const ProducerOptions& checked(const ProducerOptions& options) {
  check(options);
  return options;
}

commands::AddTerms widest(const std::optional<Trim>& retention) {
  commands::AddTerms terms;
  if (retention) terms.trim = commands::trim_terms(*retention, std::chrono::system_clock::now());
  return terms;
}

}  // namespace

ProducerCore::ProducerCore(const EventStream& stream, const ProducerOptions& options)
    : ProducerCore{stream, options,
                   [stream](std::stop_token stop) {
                     return Pool::of(stream.pool()).connect(stream.key(), std::move(stop));
                   },
                   Clock::system()} {}

ProducerCore::ProducerCore(const EventStream& stream, const ProducerOptions& options,
                           ProducerSender::Connect connect, const Clock& clock)
    : stream_{stream},
      options_{checked(options)},
      clock_{clock},
      widest_{widest(stream.options().retention)},
      queue_{options_, wakeup_, clock_},
      sender_{{.key = stream_.key(),
               .retention = stream_.options().retention,
               .options = options_,
               .queue = queue_,
               .counters = counters_,
               .wakeup = wakeup_,
               .clock = clock_},
              std::move(connect)},
      thread_{[this] { sender_.run(stop_.get_token()); }} {}

ProducerCore::~ProducerCore() {
  queue_.close();
  if (!queue_.flush(after(clock_.now(), options_.close_timeout))) {
    stop_.request_stop();
    queue_.give_up();
  }
  thread_.join();
}

void ProducerCore::send(const Fields& fields, ProducerReceipt receipt) {
  made_in_.check(kThisProducer);
  checks::entry(widest_, {}, fields);
  thread_local RequestBuffer command;
  command.clear();
  commands::xadd(command, stream_.key(), {}, {}, fields);
  const bool in_callback = is_in_callback();
  if (in_callback) sender_.publish();  // its own place, for one
  const Milliseconds patience = in_callback ? Milliseconds{0} : options_.send_timeout;
  try {
    queue_.add(command.bytes(), fields.size(), std::move(receipt), patience);
  } catch (const TimeoutError&) {
    ProducerCounters::add(counters_.refused);
    throw;
  }
  ProducerCounters::add(counters_.taken);
}

bool ProducerCore::flush(Milliseconds timeout) {
  made_in_.check(kThisProducer);
  if (is_in_callback()) {
    throw InvalidArgument{
        "flush() was called from a callback of the Producer, where it would wait "
        "for itself"};
  }
  return queue_.flush(after(clock_.now(), timeout));
}

ProducerStats ProducerCore::stats() const {
  made_in_.check(kThisProducer);
  const auto depth = queue_.depth();
  return counters_.snapshot(depth.entries, depth.bytes);
}

}  // namespace millrace::detail
