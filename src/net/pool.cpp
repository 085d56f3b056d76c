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

/// A borrowed place in the pool, with its connection: it goes home healthy or not at all.
class Loan {
 public:
  Loan(Slots& slots, Topology& topology, const CallSpec& spec)
      : slots_{slots}, topology_{topology}, spec_{spec}, pooled_{slots.acquire(spec)} {}
  ~Loan() { slots_.release(std::move(pooled_)); }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  /// A connection that is fit for use: the one from the pool, or a new one in its place.
  Connection& fit(TimePoint now) {
    const bool is_fit = pooled_.connection && now < pooled_.expires &&
                        pooled_.connection->is_quiet() &&
                        topology_.serves(*pooled_.connection, spec_.key);
    return is_fit ? *pooled_.connection : fresh(TimePoint::max());
  }

  /// A new connection in place of the one there is.
  Connection& fresh(TimePoint deadline) {
    if (std::exchange(pooled_, {}).connection) slots_.note_closed();
    pooled_ = slots_.note_created(topology_.connect(spec_.key, deadline, spec_.stop));
    return *pooled_.connection;
  }

 private:
  Slots& slots_;
  Topology& topology_;
  const CallSpec& spec_;
  Pooled pooled_;
};

}  // namespace

struct Pool::Impl {
  Impl(std::unique_ptr<Topology> topology_given, ConnectionOptions options_given,
       const PoolOptions& pool, const Clock& clock_given)
      : options{std::move(options_given)},
        clock{clock_given},
        topology{std::move(topology_given)},
        slots{pool, *topology, clock} {}

  /// The call as it goes to a connection: a repetition shares the deadline of the first try.
  CallSpec timed(const CallSpec& spec) const {
    CallSpec timed = spec;
    if (!timed.deadline) {
      timed.deadline = after(clock.now(), sum(options.command_timeout, spec.block));
    }
    return timed;
  }

  template <typename Run>
  Reply run(const CallSpec& spec, Run run_on) {
    made_in.check("this ConnectionPool");
    Loan loan{slots, *topology, spec};
    Connection& connection = loan.fit(clock.now());
    const CallSpec timed_spec = timed(spec);
    try {
      return run_on(connection, timed_spec);
    } catch (const IoError& error) {
      // Not on another idle connection: what broke this one has broken its likes.
      if (error.outcome() != Outcome::kNotApplied && spec.repeat != Repeat::kSafe) throw;
    }
    return run_on(loan.fresh(*timed_spec.deadline), timed_spec);
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
  return impl_->run(spec, [&](Connection& connection, const CallSpec& timed) {
    return connection.call(timed, write);
  });
}

Reply Pool::eval(const CallSpec& spec, const Script& script, std::span<const std::string_view> keys,
                 std::span<const std::string_view> args) {
  return impl_->run(spec, [&](Connection& connection, const CallSpec& timed) {
    return connection.eval(timed, script, keys, args);
  });
}

PipelineResult Pool::pipeline(const CallSpec& spec, WriteRequest write, TakeReply take) {
  impl_->made_in.check("this ConnectionPool");
  std::optional<Loan> loan;
  Connection* connection = nullptr;
  const auto get = [&](auto obtain) -> std::optional<Error> {
    try {
      connection = &obtain();
    } catch (const Error& error) {
      return error;
    }
    return {};
  };

  if (auto error = get([&]() -> Connection& {
        loan.emplace(impl_->slots, *impl_->topology, spec);
        return loan->fit(impl_->clock.now());
      })) {
    return {.error = std::move(error)};
  }
  const CallSpec timed = impl_->timed(spec);
  auto result = connection->pipeline(timed, write, take);
  const bool may_repeat = result.error && result.error->code() == Error::Code::kIo &&
                          result.replies == 0 && (result.sent == 0 || spec.repeat == Repeat::kSafe);
  if (!may_repeat) return result;
  if (auto error = get([&]() -> Connection& { return loan->fresh(*timed.deadline); })) {
    return {.error = std::move(error)};
  }
  return connection->pipeline(timed, write, take);
}

std::unique_ptr<Connection> Pool::connect(std::string_view key, std::stop_token stop) {
  impl_->made_in.check("this ConnectionPool");
  return impl_->topology->connect(key, TimePoint::max(), std::move(stop));
}

const ConnectionOptions& Pool::options() const noexcept { return impl_->options; }

PoolStats Pool::stats() const {
  impl_->made_in.check("this ConnectionPool");
  return impl_->slots.stats();
}

}  // namespace millrace::detail
