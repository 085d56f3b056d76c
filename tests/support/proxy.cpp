#include "support/proxy.hpp"

#include "support/proxy_script.hpp"
#include "support/proxy_sockets.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::test {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A client's connection, and the one to the server that was made for it.
struct Pair {
  struct Late {
    Clock::time_point due{};
    std::string bytes{};
  };

  Socket client;
  Socket server;
  std::optional<Act> act{};  ///< To be done to the reply.
  std::size_t replied = 0;   ///< Bytes since the last request.
  std::deque<Late> late{};   ///< Of replies, in order.
  bool server_closed = false;
  bool broken = false;
};

}  // namespace

class Proxy::Loop {
 public:
  explicit Loop(const ThrowawayServer& server)
      : options_{server.options()},
        server_path_{server.folder() / "socket"},
        listener_{listening_on_loopback()},
        wake_{::eventfd(0, EFD_CLOEXEC)},
        thread_{[this] { run(); }} {
    options_.unix_socket.clear();
    options_.port = port_of(listener_);
  }

  ~Loop() {
    change([this] { ended_ = true; });
    thread_.join();
  }

  const ConnectionOptions& options() const { return options_; }

  template <typename Change>
  void change(Change&& make) {
    {
      const std::lock_guard lock{mutex_};
      make();
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.fd(), &one, sizeof one);
  }

  void add(Act act) {
    change([&] { script_.add(std::move(act)); });
  }
  void set_stalled(bool stalled) {
    change([&] { stalled_ = stalled; });
  }
  void delay_replies(milliseconds delay) {
    change([&] { delay_ = delay; });
  }
  void limit_replies(std::optional<std::size_t> bytes) {
    change([&] { limit_ = bytes; });
  }
  void cut() {
    change([&] { cut_ = true; });
  }
  void half_open(End that) {
    change([&] { half_open_ = that; });
  }

  std::string deliver() {
    std::deque<Detained> detained;
    change([&] { detained.swap(detained_); });
    std::string answers;
    for (const Detained& request : detained) {
      std::array<char, 65536> bytes{};
      if (!send_all(request.server.fd(), request.bytes)) continue;
      const ssize_t n = ::recv(request.server.fd(), bytes.data(), bytes.size(), 0);
      if (n > 0) answers.append(bytes.data(), static_cast<std::size_t>(n));
    }
    return answers;
  }

  template <typename Look>
  auto look(Look&& at) const {
    const std::lock_guard lock{mutex_};
    return at();
  }
  bool has_acted() const {
    return look([this] { return script_.is_done(); });
  }
  std::size_t acted() const {
    return look([this] { return script_.acted(); });
  }
  std::size_t accepted() const {
    return look([this] { return accepted_; });
  }

 private:
  /// A request on its way, and the connection that it will come by.
  struct Detained {
    Socket server;
    std::string bytes{};
  };

  void run() {
    std::list<Pair> pairs;
    std::list<Socket> half_open;
    for (;;) {
      if (!obey(pairs, half_open)) return;
      const std::vector<pollfd> polled = poll_all(pairs);
      if (polled[0].revents != 0) drain_wake();
      std::size_t at = 2;
      for (Pair& pair : pairs) {
        if (polled.at(at).revents != 0) forward_request(pair);
        if (polled.at(at + 1).revents != 0 && !pair.broken) forward_reply(pair);
        if (!pair.broken) send_late(pair);
        at += 2;
      }
      drop_broken(pairs);
      if (polled[1].revents != 0) accept_into(pairs);
    }
  }

  bool obey(std::list<Pair>& pairs, std::list<Socket>& half_open) {
    const std::lock_guard lock{mutex_};
    const auto end = std::exchange(half_open_, std::nullopt);
    const bool cut = std::exchange(cut_, false);
    if (end) {
      for (Pair& pair : pairs) {
        half_open.push_back(std::move(*end == End::kServer ? pair.server : pair.client));
      }
    }
    if (cut) half_open.clear();
    if (cut || end) {
      for (Pair& pair : pairs) pair.broken = true;
      drop_broken_locked(pairs);
    }
    return !ended_;
  }

  void drop_broken(std::list<Pair>& pairs) {
    const std::lock_guard lock{mutex_};
    drop_broken_locked(pairs);
  }

  void drop_broken_locked(std::list<Pair>& pairs) {
    for (Pair& pair : pairs) {
      if (pair.broken && pair.act) script_.end(*pair.act);
    }
    pairs.remove_if([](const Pair& pair) { return pair.broken; });
  }

  std::vector<pollfd> poll_all(const std::list<Pair>& pairs) {
    std::vector<pollfd> polled{{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
    const bool stalled = look([this] { return stalled_; });
    auto next = Clock::time_point::max();
    for (const Pair& pair : pairs) {
      // A negative descriptor is one that poll passes over.
      polled.push_back({stalled ? -1 : pair.client.fd(), POLLIN, 0});
      polled.push_back({stalled || pair.server_closed ? -1 : pair.server.fd(), POLLIN, 0});
      if (!pair.late.empty() && !stalled) next = std::min(next, pair.late.front().due);
    }
    while (::poll(polled.data(), polled.size(), time_to(next)) < 0 && errno == EINTR) {
    }
    return polled;
  }

  /// As poll() wants it.
  static int time_to(Clock::time_point when) {
    if (when == Clock::time_point::max()) return -1;
    const auto left = std::chrono::ceil<milliseconds>(when - Clock::now()).count();
    return static_cast<int>(std::clamp<milliseconds::rep>(left, 0, 60'000));
  }

  void drain_wake() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t n = ::read(wake_.fd(), &count, sizeof count);
  }

  void accept_into(std::list<Pair>& pairs) {
    const int client = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    {
      const std::lock_guard lock{mutex_};
      ++accepted_;
    }
    Socket accepted{client};
    send_without_delay(accepted);
    try {
      pairs.push_back({std::move(accepted), connected_to(server_path_)});
    } catch (const std::system_error&) {
      // There is no server just now: the client sees its connection close.
    }
  }

  /// What has come; nullopt while nothing gets through. What comes after stall() has returned is
  /// not read, whatever poll had said before.
  std::optional<std::string_view> read_unless_stalled(int fd) {
    const std::lock_guard lock{mutex_};
    if (stalled_) return std::nullopt;
    ssize_t n = 0;
    do {
      n = ::recv(fd, bytes_.data(), bytes_.size(), 0);
    } while (n < 0 && errno == EINTR);
    return std::string_view{bytes_.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  }

  void forward_request(Pair& pair) {
    const auto read = read_unless_stalled(pair.client.fd());
    if (!read) return;
    const std::string_view bytes = *read;
    const std::lock_guard lock{mutex_};
    if (bytes.empty()) {
      pair.broken = true;
      return;
    }
    pair.replied = 0;
    // What is done to a reply ends where the next request begins.
    if (pair.act && pair.act->happened) pair.act.reset();
    if (!pair.act) pair.act = script_.take_for(bytes);
    if (!pair.act || !act_on_request(pair, bytes)) {
      if (!send_all(pair.server.fd(), bytes)) pair.broken = true;
    }
  }

  /// True: the request has come to its end here.
  bool act_on_request(Pair& pair, std::string_view bytes) {
    switch (pair.act->kind) {
      case Act::Kind::kLoseRequest:
        pair.broken = true;
        break;
      case Act::Kind::kDetainRequest:
        detained_.push_back({std::move(pair.server), std::string{bytes}});
        pair.broken = true;
        break;
      case Act::Kind::kDropRequest:
        break;
      case Act::Kind::kAnswer:
        for (std::size_t i = commands_in(bytes); i > 0; --i) {
          if (!send_all(pair.client.fd(), '-' + pair.act->error + "\r\n")) pair.broken = true;
        }
        break;
      default:
        return false;
    }
    script_.note(*pair.act);
    pair.act.reset();
    return true;
  }

  void forward_reply(Pair& pair) {
    const auto read = read_unless_stalled(pair.server.fd());
    if (!read) return;
    const std::string_view bytes = *read;
    const std::lock_guard lock{mutex_};
    pair.replied += bytes.size();
    if (pair.act && act_on_reply(pair, bytes)) return;
    if (bytes.empty()) {
      pair.server_closed = true;
      pair.broken = pair.late.empty();
    } else if (limit_ && pair.replied > *limit_) {
      return;  // this much never arrives
    } else {
      send_reply(pair, bytes, delay_);
    }
  }

  /// True: what has come of the reply is dealt with.
  bool act_on_reply(Pair& pair, std::string_view bytes) {
    Act& act = *pair.act;
    switch (act.kind) {
      case Act::Kind::kLoseReply:
        break;
      case Act::Kind::kTruncateReply:
        if (bytes.empty() || pair.replied <= act.bytes) return false;
        send_all(pair.client.fd(), bytes.substr(0, bytes.size() - (pair.replied - act.bytes)));
        break;
      case Act::Kind::kDropReply:
      case Act::Kind::kDelayReply:
        if (bytes.empty()) return false;
        script_.note(act);
        if (act.kind == Act::Kind::kDelayReply) send_reply(pair, bytes, act.delay);
        return true;
      default:
        return false;
    }
    pair.broken = true;
    script_.note(act);
    return true;
  }

  static void send_reply(Pair& pair, std::string_view bytes, milliseconds delay) {
    if (delay > milliseconds{0} || !pair.late.empty()) {
      pair.late.push_back({Clock::now() + delay, std::string{bytes}});
    } else if (!send_all(pair.client.fd(), bytes)) {
      pair.broken = true;
    }
  }

  void send_late(Pair& pair) {
    const std::lock_guard lock{mutex_};
    if (stalled_) return;
    while (!pair.late.empty() && pair.late.front().due <= Clock::now()) {
      if (!send_all(pair.client.fd(), pair.late.front().bytes)) pair.broken = true;
      pair.late.pop_front();
    }
    if (pair.server_closed && pair.late.empty()) pair.broken = true;
  }

  ConnectionOptions options_;
  std::string server_path_;
  Socket listener_;
  Socket wake_;
  std::array<char, 65536> bytes_{};

  mutable std::mutex mutex_;
  bool ended_ = false;
  bool cut_ = false;
  bool stalled_ = false;
  std::optional<End> half_open_{};
  milliseconds delay_{0};
  std::optional<std::size_t> limit_{};
  ProxyScript script_{};
  std::deque<Detained> detained_{};
  std::size_t accepted_ = 0;

  std::thread thread_;  // last: it uses all of the above
};

Proxy::Proxy(const ThrowawayServer& server) : loop_{std::make_unique<Loop>(server)} {}
Proxy::~Proxy() = default;

ConnectionOptions Proxy::options() const { return loop_->options(); }

void Proxy::lose_reply_to(const std::string& word, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kLoseReply, .word = word, .nth = nth});
}
void Proxy::lose_request(const std::string& word, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kLoseRequest, .word = word, .nth = nth});
}
void Proxy::truncate_reply_to(const std::string& word, std::size_t bytes, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kTruncateReply, .word = word, .nth = nth, .bytes = bytes});
}
void Proxy::drop_reply_to(const std::string& word, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kDropReply, .word = word, .nth = nth});
}
void Proxy::drop_request(const std::string& word, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kDropRequest, .word = word, .nth = nth});
}
void Proxy::detain_request(const std::string& word, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kDetainRequest, .word = word, .nth = nth});
}
std::string Proxy::deliver() { return loop_->deliver(); }
void Proxy::delay_reply_to(const std::string& word, milliseconds delay, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kDelayReply, .word = word, .nth = nth, .delay = delay});
}
void Proxy::answer_with_error(const std::string& word, const std::string& error, std::size_t nth) {
  loop_->add({.kind = Act::Kind::kAnswer, .word = word, .nth = nth, .error = error});
}
bool Proxy::has_lost() const { return loop_->has_acted(); }
std::size_t Proxy::acted() const { return loop_->acted(); }

void Proxy::delay_replies(milliseconds delay) { loop_->delay_replies(delay); }
void Proxy::limit_replies(std::optional<std::size_t> bytes) { loop_->limit_replies(bytes); }
void Proxy::stall() { loop_->set_stalled(true); }
void Proxy::flow() { loop_->set_stalled(false); }
void Proxy::cut() { loop_->cut(); }
void Proxy::half_open(End that) { loop_->half_open(that); }
std::size_t Proxy::accepted() const { return loop_->accepted(); }

}  // namespace millrace::test
