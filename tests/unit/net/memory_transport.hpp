#pragma once

#include "net/transport.hpp"
#include "support/manual_clock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::detail {

/// A peer and its time, played from a script: what can be read, how much can be written, and what
/// comes to pass while one waits.
class MemoryTransport final : public Transport {
 public:
  /// Shared with the test, which the transport's owner outlives.
  struct State {
    std::deque<std::string> incoming{};  ///< One receive takes one of them, or a part.
    bool ends = false;                   ///< After `incoming`, the end of the stream.
    int receive_error = 0;               ///< Or this errno.

    std::string sent{};
    std::size_t room = std::numeric_limits<std::size_t>::max();  ///< What may still be written.
    int send_error = 0;                                          ///< In place of "no room".

    /// What happens in the next waits, in turn; each says how the wait ends. When there is no more,
    /// the clock moves to the deadline.
    std::deque<std::function<Waited(Interest)>> waits{};
    std::size_t waited = 0;
    bool sending_finished = false;
    bool closed = false;
  };

  MemoryTransport(State& state, test::ManualClock& clock) : state_{state}, clock_{clock} {}
  ~MemoryTransport() override { state_.closed = true; }

  IoResult receive(std::span<char> into) noexcept override {
    if (state_.incoming.empty()) {
      if (state_.receive_error != 0) return {.error_number = state_.receive_error};
      if (state_.ends) return {.status = IoResult::Status::kEnd};
      return {.status = IoResult::Status::kWantRead};
    }
    std::string& next = state_.incoming.front();
    const std::size_t bytes = next.copy(into.data(), into.size());
    next.erase(0, bytes);
    if (next.empty()) state_.incoming.pop_front();
    return {.status = IoResult::Status::kDone, .bytes = bytes};
  }

  IoResult send(std::string_view bytes) noexcept override {
    const auto count = std::min(bytes.size(), state_.room);
    if (count == 0 && state_.send_error != 0) return {.error_number = state_.send_error};
    if (count == 0) return {.status = IoResult::Status::kWantWrite};
    state_.sent += bytes.substr(0, count);
    state_.room -= count;
    return {.status = IoResult::Status::kDone, .bytes = count};
  }

  Waited wait(Interest interest, const Wakeup*, TimePoint deadline) noexcept override {
    ++state_.waited;
    if (!state_.waits.empty()) {
      auto next = std::move(state_.waits.front());
      state_.waits.pop_front();
      return next(interest);
    }
    const bool is_ready = (interest.readable && !state_.incoming.empty()) || state_.ends ||
                          state_.receive_error != 0 || (interest.writable && state_.room > 0);
    if (is_ready) return Waited::kReady;
    clock_.advance_to(deadline);
    return Waited::kTimedOut;
  }

  bool is_quiet() noexcept override { return state_.incoming.empty() && !state_.ends; }
  void finish_sending() noexcept override { state_.sending_finished = true; }
  void close() noexcept override { state_.closed = true; }

 private:
  State& state_;
  test::ManualClock& clock_;
};

}  // namespace millrace::detail
