#include "worker/call.hpp"

#include "net/deadline.hpp"

#include <utility>

namespace millrace {

bool Delivery::extend(std::chrono::milliseconds time) const {
  return call != nullptr && call->extend(time);
}

Completion Delivery::defer() const { return Completion{call == nullptr ? nullptr : call->defer()}; }

Completion::Completion() noexcept = default;
Completion::Completion(std::shared_ptr<detail::Deferred> deferred) noexcept
    : deferred_{std::move(deferred)} {}
Completion::Completion(Completion&& other) noexcept = default;

Completion& Completion::operator=(Completion&& other) noexcept {
  if (this != &other) {
    finish(Verdict::retry());
    deferred_ = std::move(other.deferred_);
  }
  return *this;
}

Completion::~Completion() { finish(Verdict::retry()); }

void Completion::finish(const Verdict& verdict) {
  if (const auto deferred = std::exchange(deferred_, nullptr)) deferred->finish(verdict);
}

namespace detail {

void Deferred::finish(const Verdict& verdict) {
  if (is_finished_.exchange(true)) return;
  door_->enter([&](Handling& handling) { handling.finish_deferred(attempt_, verdict); });
}

bool Call::extend(Milliseconds time) {
  return handling_.shared_.ledger.extend(attempt_.work.ticket,
                                         after(handling_.shared_.clock.now(), time));
}

std::shared_ptr<Deferred> Call::defer() {
  if (deferred_) return nullptr;
  deferred_ = std::make_shared<Deferred>(handling_.door_, attempt_);
  return deferred_;
}

}  // namespace detail
}  // namespace millrace
