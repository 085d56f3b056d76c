#include "support/proxy.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace millrace::test {

namespace {

class Socket {
 public:
  explicit Socket(int fd) : fd_{fd} {
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "proxy");
  }
  Socket(Socket&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  int fd() const noexcept { return fd_; }

 private:
  int fd_;
};

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

Socket unix_socket() { return Socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }

Socket connected_to(const std::string& path) {
  Socket socket = unix_socket();
  const sockaddr_un address = address_of(path);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::system_error(errno, std::generic_category(), "proxy: no server");
  }
  return socket;
}

Socket listening_at(const std::string& path) {
  Socket socket = unix_socket();
  const sockaddr_un address = address_of(path);
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.fd(), 128) != 0) {
    throw std::system_error(errno, std::generic_category(), "proxy: " + path);
  }
  return socket;
}

bool send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

class Proxy::Loop {
 public:
  explicit Loop(const ThrowawayServer& server)
      : options_{server.options()},
        server_path_{options_.unix_socket},
        path_{unique_path(server)},
        listener_{listening_at(path_)},
        wake_{::eventfd(0, EFD_CLOEXEC)},
        thread_{[this] { run(); }} {
    options_.unix_socket = path_;
  }

  ~Loop() {
    change([this] { ended_ = true; });
    thread_.join();
    ::unlink(path_.c_str());
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

  void lose(const std::string& word, std::size_t nth, bool request) {
    change([&] {
      word_ = word;
      countdown_ = nth;
      lose_request_ = request;
      lost_ = false;
    });
  }

  void set_stalled(bool stalled) {
    change([&] { stalled_ = stalled; });
  }

  void limit_replies(std::optional<std::size_t> bytes) {
    change([&] { limit_ = bytes; });
  }

  void cut() {
    change([&] { cut_ = true; });
  }

  bool lost() const {
    const std::lock_guard lock{mutex_};
    return lost_;
  }

  std::size_t accepted() const {
    const std::lock_guard lock{mutex_};
    return accepted_;
  }

 private:
  struct Pair {
    Socket client;
    Socket server;
    bool swallow_reply = false;
    std::size_t replied = 0;  // bytes since the last request
    bool broken = false;
  };

  static std::string unique_path(const ThrowawayServer& server) {
    static std::size_t count = 0;
    return server.folder() / ("proxy" + std::to_string(count++));
  }

  void run() {
    std::list<Pair> pairs;
    for (;;) {
      if (!obey(pairs)) return;
      const std::vector<pollfd> polled = poll_all(pairs);
      if (polled[0].revents != 0) drain_wake();
      std::size_t at = 2;
      for (Pair& pair : pairs) {
        if (polled.at(at).revents != 0) forward_request(pair);
        if (polled.at(at + 1).revents != 0 && !pair.broken) forward_reply(pair);
        at += 2;
      }
      pairs.remove_if([](const Pair& pair) { return pair.broken; });
      if (polled[1].revents != 0) accept_into(pairs);
    }
  }

  bool obey(std::list<Pair>& pairs) {
    const std::lock_guard lock{mutex_};
    if (std::exchange(cut_, false)) pairs.clear();
    return !ended_;
  }

  std::vector<pollfd> poll_all(const std::list<Pair>& pairs) {
    std::vector<pollfd> polled{{wake_.fd(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
    const bool stalled = is_stalled();
    for (const Pair& pair : pairs) {
      // A negative descriptor is one that poll passes over.
      polled.push_back({stalled ? -1 : pair.client.fd(), POLLIN, 0});
      polled.push_back({stalled ? -1 : pair.server.fd(), POLLIN, 0});
    }
    while (::poll(polled.data(), polled.size(), -1) < 0 && errno == EINTR) {
    }
    return polled;
  }

  bool is_stalled() const {
    const std::lock_guard lock{mutex_};
    return stalled_;
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
    pair.replied = 0;
    if (!word_.empty() && bytes.find(word_) != std::string_view::npos && --countdown_ == 0) {
      word_.clear();
      pair.swallow_reply = !lose_request_;
      if (lose_request_) {
        lost_ = true;
        pair.broken = true;
        return;
      }
    }
    if (bytes.empty() || !send_all(pair.server.fd(), bytes)) pair.broken = true;
  }

  bool is_too_long(std::size_t reply) const {
    const std::lock_guard lock{mutex_};
    return limit_ && reply > *limit_;
  }

  void forward_reply(Pair& pair) {
    const auto read = read_unless_stalled(pair.server.fd());
    if (!read) return;
    const std::string_view bytes = *read;
    if (pair.swallow_reply) {
      const std::lock_guard lock{mutex_};
      lost_ = true;
      pair.broken = true;
    } else if (is_too_long(pair.replied += bytes.size())) {
      if (bytes.empty()) pair.broken = true;
    } else if (bytes.empty() || !send_all(pair.client.fd(), bytes)) {
      pair.broken = true;
    }
  }

  ConnectionOptions options_;
  std::string server_path_;
  std::string path_;
  Socket listener_;
  Socket wake_;
  std::array<char, 65536> bytes_{};

  mutable std::mutex mutex_;
  bool ended_ = false;
  bool cut_ = false;
  bool stalled_ = false;
  std::optional<std::size_t> limit_{};
  std::string word_{};
  std::size_t countdown_ = 0;
  bool lose_request_ = false;
  bool lost_ = false;
  std::size_t accepted_ = 0;

  std::thread thread_;  // last: it uses all of the above
};

Proxy::Proxy(const ThrowawayServer& server) : loop_{std::make_unique<Loop>(server)} {}
Proxy::~Proxy() = default;

ConnectionOptions Proxy::options() const { return loop_->options(); }
void Proxy::lose_reply_to(const std::string& word, std::size_t nth) {
  loop_->lose(word, nth, false);
}
void Proxy::lose_request(const std::string& word, std::size_t nth) { loop_->lose(word, nth, true); }
bool Proxy::has_lost() const { return loop_->lost(); }
void Proxy::limit_replies(std::optional<std::size_t> bytes) { loop_->limit_replies(bytes); }
void Proxy::stall() { loop_->set_stalled(true); }
void Proxy::flow() { loop_->set_stalled(false); }
void Proxy::cut() { loop_->cut(); }
std::size_t Proxy::accepted() const { return loop_->accepted(); }

}  // namespace millrace::test
