#include "worker_test.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <map>
#include <optional>
#include <system_error>

namespace millrace::test {
namespace {

using Clock = std::chrono::steady_clock;

/// A process of its own, in which `run` is called. It ends with this object, or with the test.
class Process {
 public:
  template <typename Run>
  explicit Process(Run&& run) {
    const pid_t parent = ::getpid();
    pid_ = ::fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) become(run, parent);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill();
    static_cast<void>(wait());
  }

  void kill() const {
    if (!status_) ::kill(pid_, SIGKILL);
  }
  /// It is stopped in whatever it does, until it is thawed.
  void freeze() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    ::waitpid(pid_, &status, WUNTRACED);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  void thaw() const { ::kill(pid_, SIGCONT); }

  bool has_ended() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }
  /// The signal that ended it, 0 if it came to its end.
  int wait() {
    int status = 0;
    if (!status_ && ::waitpid(pid_, &status, 0) == pid_) status_ = status;
    return WIFSIGNALED(status_.value_or(0)) ? WTERMSIG(*status_) : 0;
  }

 private:
  /// Never returns: this process has a copy of the test, and is not to go on with it.
  template <typename Run>
  [[noreturn]] static void become(Run& run, pid_t parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    try {
      run();
    } catch (...) {
      ::_exit(1);
    }
    ::_exit(0);
  }

  pid_t pid_ = -1;
  std::optional<int> status_{};
};

/// Workers in processes of their own, which tell the test by way of the server what they do: a
/// process is made only while the test has no other thread.
class WorkerProcess : public WorkerTest {
 protected:
  /// For a handler in such a process: writes down that it was called.
  void tell(const Delivery& delivery) {
    RawClient{server().options()}(
        "RPUSH", "calls",
        text_of(delivery.consumer, delivery.entry.id(), std::to_string(delivery.attempt)));
  }
  static std::string text_of(std::string_view consumer, StreamId id, std::string_view attempt) {
    std::string call{consumer};
    return call.append(" ").append(id.to_string()).append(" ").append(attempt);
  }

  /// For such a process: waits until the test has set `key`.
  void wait_for(std::string_view key) {
    RawClient mine{server().options()};
    static_cast<void>(wait_until([&] { return mine("EXISTS", key) == ":1"; }));
  }

  /// What the handlers in all processes wrote down.
  std::vector<std::string> told() {
    std::vector<std::string> calls;
    for (const RawReply& call : raw()("LRANGE", "calls", 0, -1).elements) {
      calls.push_back(call.text);
    }
    return calls;
  }
  [[nodiscard]] bool has_told(const std::string& call) {
    return wait_until([&] {
      const auto calls = told();
      return std::find(calls.begin(), calls.end(), call) != calls.end();
    });
  }
};

/// Its parameter is the name of each worker, one after another; empty: another name each time.
class WorkerThatAborts : public WorkerProcess, public ::testing::WithParamInterface<const char*> {
 protected:
  static constexpr StreamId kDeadly{1, 0};
  /// Those that other threads have in their hands when the process ends.
  static constexpr std::uint64_t kCompany = 3;

  /// A worker that ends its process whenever it gets kDeadly, if it can with others in its hands.
  void work() {
    WorkerOptions options = this->options();
    options.consumer = GetParam();
    options.min_idle = 500ms;
    options.block = 50ms;
    options.reap_every = 20ms;
    options.concurrency = 1 + kCompany;
    std::atomic<std::uint64_t> company{0};
    std::atomic<bool> deadly{false};
    // With the last start there is nobody to wait for: but if there is, he is to be there.
    const auto patience = [&](const Delivery& delivery) {
      return delivery.attempt < options.max_deliveries ? 5s : 300ms;
    };
    ConsumerWorker worker{
        stream(), options, [&](const Delivery& delivery) {
          tell(delivery);
          if (delivery.entry.id() == kDeadly) {
            deadly = true;
            static_cast<void>(wait_until([&] { return company >= kCompany; }, patience(delivery)));
            std::abort();
          }
          if (delivery.entry.id().ms > kDeadly.ms + kCompany) return;
          ++company;
          if (wait_until([&] { return deadly.load(); }, patience(delivery))) {
            static_cast<void>(wait_until([] { return false; }));
          }
          --company;
        }};
    worker.start();
    wait_for("end");
  }
};

TEST_P(WorkerThatAborts, BuriesTheEntryThatItDiesOfAndNoneOfItsNeighbours) {
  const Ids ids = append_ids(16);
  int aborted = 0;
  const auto is_done = [&] { return pending() == 0 && raw()("XLEN", "{s}:dlq") != ":0"; };
  for (int start = 0; start < 20 && !is_done(); ++start) {
    Process worker{[this] { work(); }};
    ASSERT_TRUE(wait_until([&] { return worker.has_ended() || is_done(); }));
    if (worker.has_ended() && worker.wait() == SIGABRT) ++aborted;
  }
  EXPECT_EQ(aborted, 5) << "once for each start";
  const RawReply letters = raw()("XRANGE", "{s}:dlq", "-", "+");
  ASSERT_EQ(letters.elements.size(), 1U) << letters;
  EXPECT_EQ(letters[0][1].field("dlq_id").text, kDeadly.to_string());
  EXPECT_EQ(letters[0][1].field("dlq_attempts").text, "5");

  std::map<std::string, int> starts;
  for (const std::string& call : told()) {
    const auto id = call.find(' ') + 1;
    ++starts[call.substr(id, call.find(' ', id) - id)];
  }
  EXPECT_EQ(starts[kDeadly.to_string()], 5);
  for (const StreamId id : ids) EXPECT_GE(starts[id.to_string()], 1) << id;
  EXPECT_EQ(pending(), 0);
}

INSTANTIATE_TEST_SUITE_P(Under, WorkerThatAborts, ::testing::Values("alice", ""),
                         [](const auto& name) {
                           return *name.param == '\0' ? "AnotherNameEachTime" : "OneName";
                         });

class WorkerThatIsFrozen : public WorkerProcess {
 protected:
  static constexpr milliseconds kMinIdle{1'000};

  WorkerOptions eager(const std::string& name) {
    WorkerOptions eager = options();
    eager.consumer = name;
    eager.min_idle = kMinIdle;
    eager.block = 50ms;
    eager.reap_every = name == "alice" ? 0ms : 20ms;  // she takes nothing back by being idle
    return eager;
  }

  /// Works until a handler has returned `verdict`, when its lease was lost, and says what came of
  /// it.
  void work(const Verdict& verdict) {
    std::atomic<bool> stopped{false};
    ConsumerWorker worker{stream(), eager("alice"), [&](const Delivery& delivery) {
                            tell(delivery);
                            wait_for("thawed");
                            stopped = wait_until([&] { return delivery.stop.stop_requested(); });
                            return verdict;
                          }};
    worker.start();
    wait_for("thawed");
    static_cast<void>(wait_until([&] {
      const WorkerStats stats = worker.stats();
      return stats.succeeded + stats.failed > 0 && stats.in_flight == 0;
    }));
    const WorkerStats stats = worker.stats();
    RawClient{server().options()}("HSET", "report", "stopped", stopped ? 1 : 0, "leases_lost",
                                  stats.leases_lost, "dead_lettered", stats.dead_lettered);
    worker.stop();
  }

  std::string reported(std::string_view what) { return raw()("HGET", "report", what).text; }

  /// Alice is frozen in her handler for twice `min_idle` and more, and goes on when Bob has the
  /// entry in his. When this returns she has ended, and he still waits.
  void freeze_and_thaw(const Verdict& verdict) {
    append_ids(1);
    Process alice{[&] { work(verdict); }};
    ASSERT_TRUE(has_told("alice 1-0 1"));
    alice.freeze();
    const auto twice = Clock::now() + 2 * kMinIdle;
    bob_ = std::make_unique<ConsumerWorker>(stream(), eager("bob"),
                                            journal_.handler([this](const Delivery&) {
                                              gate_.pass();
                                              return Verdict::ack();
                                            }));
    bob_->start();
    ASSERT_TRUE(gate_.wait_for_arrivals(1));
    ASSERT_TRUE(wait_until([&] { return Clock::now() >= twice; }));
    alice.thaw();
    raw()("SET", "thawed", "1");
    ASSERT_TRUE(wait_until([&] { return alice.has_ended(); }));
    EXPECT_EQ(alice.wait(), 0);
    EXPECT_EQ(reported("stopped"), "1");
    EXPECT_EQ(reported("leases_lost"), "1");
    EXPECT_EQ(reported("dead_lettered"), "0");
  }

  void expect_two_calls() {
    gate_.open();
    EXPECT_TRUE(nothing_is_pending());
    bob_->stop();
    EXPECT_THAT(told(), ::testing::ElementsAre("alice 1-0 1"));
    ASSERT_EQ(journal_.size(), 1U);
    EXPECT_EQ(journal_.calls()[0].attempt, 2U);
    EXPECT_EQ(raw()("EXISTS", "{s}:dlq"), ":0");
  }

  Journal journal_;
  Gate gate_;
  std::unique_ptr<ConsumerWorker> bob_;
};

TEST_F(WorkerThatIsFrozen, BuriesNothingThatAPeerHasMeanwhile) {
  freeze_and_thaw(Verdict::dead_letter("no"));
  if (HasFatalFailure()) return;
  EXPECT_EQ(owner({1, 0}), "bob");
  EXPECT_EQ(deliveries({1, 0}), 2);
  expect_two_calls();
  EXPECT_EQ(bob_->stats().leases_lost, 0U) << "his success stands";
}

TEST_F(WorkerThatIsFrozen, ParksNothingThatAPeerHasMeanwhile) {
  freeze_and_thaw(Verdict::retry_after(0ms));
  if (HasFatalFailure()) return;
  EXPECT_EQ(owner({1, 0}), "bob");
  EXPECT_EQ(deliveries({1, 0}), 2);
  expect_two_calls();
  EXPECT_EQ(bob_->stats().leases_lost, 0U) << "his success stands";
}

TEST_F(WorkerThatIsFrozen, HasItsSuccessAcknowledgedWhoeverHasTheEntry) {
  freeze_and_thaw(Verdict::ack());
  if (HasFatalFailure()) return;
  EXPECT_EQ(pending(), 0) << "although he has not come to his end";
  expect_two_calls();
}

class WorkerThatIsKilled : public WorkerProcess {
 protected:
  /// Alice dies with her only entry in her hands.
  void kill_in_a_handler(const WorkerOptions& options) {
    append_ids(1);
    Process alice{[&] {
      ConsumerWorker worker{stream(), options, [&](const Delivery& delivery) {
                              tell(delivery);
                              wait_for("nothing");
                            }};
      worker.start();
      wait_for("nothing");
    }};
    ASSERT_TRUE(has_told("alice 1-0 1"));
    alice.kill();
    EXPECT_EQ(alice.wait(), SIGKILL);
  }
};

TEST_F(WorkerThatIsKilled, HasItsEntryHandledByAPeer) {
  WorkerOptions options = this->options();
  options.min_idle = 500ms;
  kill_in_a_handler(options);
  Journal journal;
  options.consumer = "bob";
  ConsumerWorker bob{stream(), options, journal.handler()};
  bob.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  ASSERT_EQ(journal.size(), 1U);
  EXPECT_EQ(journal.calls()[0].attempt, 2U);
  EXPECT_TRUE(journal.calls()[0].reclaimed);
  EXPECT_TRUE(nothing_is_pending());
}

TEST_F(WorkerThatIsKilled, HasItsEntryHandledByItsSuccessorLongBeforeItIsIdle) {
  WorkerOptions options = this->options();
  options.min_idle = 1h;
  options.lease_renew_every = 200ms;
  kill_in_a_handler(options);
  ASSERT_TRUE(wait_until([&] {
    const RawReply now = raw()("TIME");
    const RawReply renewed = raw()("HGET", "{s}:millrace:g", "at:alice");
    return std::stoll(now[0].text) * 1000 + std::stoll(now[1].text) / 1000 >=
           std::stoll(renewed.text) + 300;
  })) << "its name is taken for its own for one and a half renewals";
  Journal journal;
  ConsumerWorker successor{stream(), options, journal.handler()};
  successor.start();
  ASSERT_TRUE(journal.wait_for(Ids{{1, 0}}));
  EXPECT_EQ(journal.calls()[0].attempt, 2U);
  EXPECT_TRUE(nothing_is_pending());
}

}  // namespace
}  // namespace millrace::test
