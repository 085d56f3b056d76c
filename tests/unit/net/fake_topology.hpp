#pragma once

#include <millrace/error.hpp>

#include "net/topology.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::detail {

/// Servers without sockets: what a pool does can be seen and steered.
class FakeServers {
 public:
  /// What a connection does in place of a call; the reply carries its number.
  using Behaviour = std::function<void(const CallSpec&)>;

  std::atomic<std::uint64_t> made{0};
  std::atomic<std::int64_t> open{0};
  std::atomic<std::int64_t> most_open{0};
  std::atomic<bool> refuses{false};  ///< The next connects throw ConnectError.
  std::atomic<bool> quiet{true};     ///< What idle connections look like.

  void next_calls(std::deque<Behaviour> behaviours) {
    const std::lock_guard lock{mutex_};
    behaviours_ = std::move(behaviours);
  }

  std::optional<Behaviour> next() {
    const std::lock_guard lock{mutex_};
    if (behaviours_.empty()) return std::nullopt;
    auto next = std::move(behaviours_.front());
    behaviours_.pop_front();
    return next;
  }

  void note_connect(TimePoint deadline) {
    const std::lock_guard lock{mutex_};
    deadlines_.push_back(deadline);
  }
  std::vector<TimePoint> connect_deadlines() const {
    const std::lock_guard lock{mutex_};
    return deadlines_;
  }

 private:
  mutable std::mutex mutex_;
  std::deque<Behaviour> behaviours_;
  std::vector<TimePoint> deadlines_;
};

class FakeConnection final : public Connection {
 public:
  explicit FakeConnection(FakeServers& servers) : servers_{servers}, id_{++servers.made} {
    const auto open = ++servers_.open;
    auto most = servers_.most_open.load();
    while (most < open && !servers_.most_open.compare_exchange_weak(most, open)) {
    }
  }
  ~FakeConnection() override { --servers_.open; }

  Reply call(const CallSpec& spec, WriteRequest) override {
    if (const auto behaviour = servers_.next()) {
      try {
        (*behaviour)(spec);
      } catch (const IoError&) {
        open_ = false;
        throw;
      }
    }
    Reply reply;
    reply.add_integer(ReplyKind::kInteger, static_cast<std::int64_t>(id_), 0);
    return reply;
  }

  PipelineResult pipeline(const CallSpec& spec, WriteRequest write, TakeReply take) override {
    RequestBuffer request;
    write(request);
    try {
      take(0, call(spec, write));
      return {.replies = 1, .sent = 1};
    } catch (const IoError& error) {
      const bool sent = error.outcome() == Outcome::kUnknown;
      return {.replies = 0, .sent = sent ? std::size_t{1} : 0, .error = error};
    }
  }

  PipelineResult converse(const CallSpec&, WriteMore, TakeReply, const Wakeup&) override {
    throw std::logic_error{"no pool converses"};
  }

  bool is_open() const noexcept override { return open_; }
  bool is_quiet() noexcept override { return open_ && servers_.quiet; }
  std::uint64_t client_id() const noexcept override { return id_; }
  std::string_view endpoint() const noexcept override { return "fake:1"; }

 private:
  FakeServers& servers_;
  std::uint64_t id_;
  bool open_ = true;
};

class FakeTopology final : public Topology {
 public:
  explicit FakeTopology(FakeServers& servers) : servers_{servers} {}

  std::unique_ptr<Connection> connect(std::string_view, TimePoint deadline,
                                      std::stop_token stop) override {
    servers_.note_connect(deadline);
    if (stop.stop_requested()) throw Interrupted{};
    if (servers_.refuses) throw ConnectError{"cannot connect to fake:1"};
    return std::make_unique<FakeConnection>(servers_);
  }
  bool serves(const Connection&, std::string_view) const noexcept override { return true; }
  std::string_view name() const noexcept override { return "fake:1"; }

 private:
  FakeServers& servers_;
};

}  // namespace millrace::detail
