#pragma once

#include "support/proxy.hpp"
#include "support/throwaway_server.hpp"

#include "plan.hpp"
#include "worker_process.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace chaos {

/// Runs the server, the proxy and the worker processes, and does to them what is drawn. For one
/// thread.
class Controller {
 public:
  explicit Controller(std::string folder);

  const millrace::test::ThrowawayServer& server() const { return server_; }

  /// Faults from `plan`, one a second, until the last of them is over.
  void start(std::vector<Draw> plan);
  bool is_over() const;
  /// What is due now. Throws std::runtime_error where a server or a worker cannot be started.
  void step();
  /// Everybody runs again.
  void calm();

  /// SIGTERM to all workers, and their ends.
  void terminate_workers();

  /// True if all workers read.
  bool is_ready() const;
  /// Names that the workers which run now read by.
  std::set<std::string> consumers() const;

  /// How often each fault has happened.
  std::map<Fault, std::size_t> happened() const;
  /// All processes that there were.
  std::vector<millrace::test::ProcessHistory> histories() const;
  std::size_t processes() const { return started_; }
  /// Ends of workers that nothing explains.
  const std::vector<std::string>& surprises() const { return surprises_; }

 private:
  using Clock = std::chrono::steady_clock;

  /// What workers run under: two names that their successors take over, and two that nobody has
  /// twice.
  static constexpr std::array kNames{"one", "two", "-", "-"};

  struct Slot {
    std::unique_ptr<WorkerProcess> process;
    std::optional<Clock::time_point> resume_at{};
  };

  std::unique_ptr<WorkerProcess> new_worker(std::size_t slot);
  void look_after_workers();
  void carry_out(const Draw& draw);
  void carry_out_on_server(const Draw& draw);
  void kill_worker(std::uint64_t random);
  void stop_worker(std::uint64_t random);
  void cut_reply(std::uint64_t random);
  void note(const std::string& line);
  static bool is_for_server(Fault fault);

  const std::string folder_;
  std::ofstream log_;
  millrace::test::ThrowawayServer server_;
  millrace::test::Proxy proxy_;
  std::vector<Slot> workers_{};
  std::vector<std::unique_ptr<WorkerProcess>> ended_{};
  std::size_t started_ = 0;

  Clock::time_point start_{};
  std::vector<Draw> plan_{};
  std::size_t next_ = 0;
  std::deque<Draw> for_server_{};  ///< Wait until it answers again.
  std::optional<Clock::time_point> server_paused_until_{};
  std::map<Fault, std::size_t> happened_{};
  std::vector<std::string> surprises_{};
};

}  // namespace chaos
