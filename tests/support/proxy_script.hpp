#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace millrace::test {

/// What a Proxy is to do once.
struct Act {
  enum class Kind : std::uint8_t {
    kLoseReply,
    kLoseRequest,
    kTruncateReply,
    kDropReply,
    kDropRequest,
    kDetainRequest,
    kDelayReply,
    kAnswer,
  };
  Kind kind{};
  std::string word{};
  std::size_t nth = 1;
  std::size_t bytes = 0;
  std::chrono::milliseconds delay{0};
  std::string error{};
  bool happened = false;
};

/// What a Proxy is to do, and how much of it has happened. Not safe from several threads.
class ProxyScript {
 public:
  void add(Act act) {
    waiting_.push_back(std::move(act));
    ++outstanding_;
  }

  /// The act that has waited for this request.
  std::optional<Act> take_for(std::string_view request) {
    std::optional<Act> found;
    for (auto act = waiting_.begin(); act != waiting_.end();) {
      const bool is_next = request.find(act->word) != std::string_view::npos && !found;
      if (!is_next || --act->nth > 0) {
        ++act;
      } else {
        found = std::move(*act);
        act = waiting_.erase(act);
      }
    }
    return found;
  }

  void note(Act& act) {
    if (std::exchange(act.happened, true)) return;
    ++acted_;
    --outstanding_;
  }

  /// The connection that it was for is over.
  void end(Act& act) {
    if (act.happened) return;
    // A reply that was to be lost, late or dropped has nobody left who wants it.
    if (act.kind != Act::Kind::kTruncateReply) return note(act);
    act.nth = 1;
    waiting_.push_back(std::move(act));
  }

  bool is_done() const { return acted_ > 0 && outstanding_ == 0; }
  std::size_t acted() const { return acted_; }

 private:
  std::deque<Act> waiting_{};
  std::size_t outstanding_ = 0;  // with those that connections have taken
  std::size_t acted_ = 0;
};

}  // namespace millrace::test
