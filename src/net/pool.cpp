#include "net/pool.hpp"

#include <millrace/error.hpp>

#include "net/deadline.hpp"
#include "net/options.hpp"
#include "net/process.hpp"
#include "net/slots.hpp"
#include "net/topology.hpp"

#include <optional>
#include <utility>

namespace millrace::detail {
namespace {

/// A place in the pool and its connection: it goes home healthy or not at all.
class Loan {
 public:
  Loan(Slots& slots, Topology& topology, const Clock& clock, const CallSpec& spec) noexcept
      : slots_{slots}, topology_{topology}, clock_{clock}, spec_{spec} {}
  ~Loan() {
    if (has_place_) slots_.release(std::move(pooled_));
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  Connection& connection() const noexcept { return *pooled_.connection; }

  /// Borrows; a connection that is dead or too old is replaced unseen. Returns the time, which is
  /// not read anew where nothing had to be waited for.
  TimePoint open() {
    TimePoint now = clock_.now();
    pooled_ = slots_.acquire(spec_, now);
    has_place_ = true;
    const bool is_fit = pooled_.connection && now < pooled_.expires && connection().is_quiet() &&
                        topology_.serves(connection(), spec_.key);
    if (is_fit) return now;
    renew(TimePoint::max());
    return clock_.now();
  }

  /// A new connection in place of the one there is.
  void renew(TimePoint deadline) {
    if (std::exchange(pooled_, {}).connection) slots_.note_closed();
    pooled_ = slots_.note_created(topology_.connect(spec_.key, deadline, spec_.stop));
  }

 private:
  Slots& slots_;
  Topology& topology_;
  const Clock& clock_;
  const CallSpec& spec_;
  Pooled pooled_;
  bool has_place_ = false;
};

/// Whether a call that broke may be sent once more: if it cannot have run, or may run twice.
bool may_repeat(const Error& error, const CallSpec& spec) {
  return error.code() == Error::Code::kIo &&
         (error.outcome() == Outcome::kNotApplied || spec.repeat == Repeat::kSafe);
}

template <typename Action>
std::optional<Error> error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

struct Pool::Impl {
  Impl(std::unique_ptr<Topology> topology_given, ConnectionOptions options_given,
       const PoolOptions& pool, const Clock& clock_given)
      : options{std::move(options_given)},
        clock{clock_given},
        topology{std::move(topology_given)},
        slots{pool, *topology, clock} {}

  /// The call as it is sent again: by the deadline of the first try.
  CallSpec again(const CallSpec& spec, TimePoint started) const {
    CallSpec again = spec;
    if (!again.deadline) again.deadline = after(started, sum(options.command_timeout, spec.block));
    return again;
  }

  template <typename Run>
  Reply run(const CallSpec& spec, Run run_on) {
    made_in.check("this ConnectionPool");
    Loan loan{slots, *topology, clock, spec};
    const auto started = loan.open();
    try {
      return run_on(loan.connection(), spec);
    } catch (const IoError& error) {
      if (!may_repeat(error, spec)) throw;
    }
    // On a new connection: what broke this one has broken the idle ones too.
    const auto second = again(spec, started);
    loan.renew(*second.deadline);
    return run_on(loan.connection(), second);
  }

  HomeProcess made_in;
  ConnectionOptions options;
  const Clock& clock;
  std::unique_ptr<Topology> topology;
  Slots slots;
};

Pool::Pool(ConnectionOptions options, PoolOptions pool) {
  check(options);
  check(pool);
  auto topology = std::make_unique<Standalone>(options, Clock::system());
  impl_ = std::make_unique<Impl>(std::move(topology), std::move(options), pool, Clock::system());
}

Pool::Pool(std::unique_ptr<Topology> topology, ConnectionOptions options, PoolOptions pool,
           const Clock& clock)
    : impl_{std::make_unique<Impl>(std::move(topology), std::move(options), pool, clock)} {}

Pool::~Pool() {
  if (impl_->made_in.is_here()) return;
  // In a child after fork() locks and lists may be as a thread left them that is not here.
  impl_.release()->slots.abandon();
}

Reply Pool::call(const CallSpec& spec, WriteRequest write) {
  return impl_->run(spec, [&](Connection& connection, const CallSpec& each) {
    return connection.call(each, write);
  });
}

Reply Pool::eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
                 std::span<const std::string_view> args) {
  return impl_->run(spec, [&](Connection& connection, const CallSpec& each) {
    return connection.eval(each, script, keys, args);
  });
}

PipelineResult Pool::pipeline(const CallSpec& spec, WriteRequest write, TakeReply take) {
  impl_->made_in.check("this ConnectionPool");
  Loan loan{impl_->slots, *impl_->topology, impl_->clock, spec};
  TimePoint started;
  if (auto error = error_of([&] { started = loan.open(); })) return {.error = std::move(error)};
  auto result = loan.connection().pipeline(spec, write, take);
  if (!result.error || result.replies > 0 || !may_repeat(*result.error, spec)) return result;
  const auto second = impl_->again(spec, started);
  if (auto error = error_of([&] { loan.renew(*second.deadline); })) {
    return {.error = std::move(error)};
  }
  return loan.connection().pipeline(second, write, take);
}

std::unique_ptr<Connection> Pool::connect(std::string_view key, std::stop_token stop,
                                          TimePoint deadline) {
  impl_->made_in.check("this ConnectionPool");
  return impl_->topology->connect(key, deadline, std::move(stop));
}

const ConnectionOptions& Pool::options() const noexcept { return impl_->options; }

PoolStats Pool::stats() const {
  impl_->made_in.check("this ConnectionPool");
  return impl_->slots.stats();
}

}  // namespace millrace::detail
