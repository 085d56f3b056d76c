#include "controller.hpp"

#include "support/raw_client.hpp"

#include <fmt/core.h>

#include "mix.hpp"
#include "workload.hpp"

#include <algorithm>
#include <utility>

namespace chaos {

using namespace std::chrono_literals;
using millrace::test::RawClient;

namespace {

constexpr auto kDrawEvery = 1s;
constexpr auto kServerPause = 3s;

millrace::test::ServerOptions durable() {
  return {.args = {"--appendonly", "yes", "--appendfsync", "always"}};
}

}  // namespace

Controller::Controller(std::string folder)
    : folder_{std::move(folder)}, log_{folder_ + "/faults"}, server_{durable()}, proxy_{server_} {
  workers_.reserve(kNames.size());
  for (std::size_t slot = 0; slot < kNames.size(); ++slot) workers_.push_back({new_worker(slot)});
}

std::unique_ptr<WorkerProcess> Controller::new_worker(std::size_t slot) {
  const std::string uri = fmt::format("redis://127.0.0.1:{}", proxy_.options().port);
  return std::make_unique<WorkerProcess>(fmt::format("worker{}-{}", slot, ++started_),
                                         kNames.at(slot), uri, folder_);
}

void Controller::note(const std::string& line) {
  log_ << millrace::test::now().count() << ' ' << line << std::endl;
}

void Controller::start(std::vector<Draw> plan) {
  plan_ = std::move(plan);
  next_ = 0;
  start_ = Clock::now();
}

bool Controller::is_over() const {
  return next_ == plan_.size() && for_server_.empty() && !server_paused_until_ &&
         std::ranges::none_of(workers_,
                              [](const Slot& slot) { return slot.resume_at.has_value(); });
}

void Controller::step() {
  const auto now = Clock::now();
  if (server_paused_until_ && now >= *server_paused_until_) {
    server_.resume();
    server_paused_until_.reset();
    note("the server goes on");
  }
  for (Slot& slot : workers_) {
    if (!slot.resume_at || now < *slot.resume_at) continue;
    slot.process->resume();
    slot.resume_at.reset();
    note(slot.process->label() + " goes on");
  }
  look_after_workers();
  while (!for_server_.empty() && !server_paused_until_) {
    const Draw draw = for_server_.front();
    for_server_.pop_front();
    carry_out_on_server(draw);
  }
  if (next_ < plan_.size() && now >= start_ + next_ * kDrawEvery) carry_out(plan_[next_++]);
}

void Controller::look_after_workers() {
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Slot& slot = workers_[i];
    const auto end = slot.process->ended();
    if (!end) continue;
    note(slot.process->label() + " has ended. " + *end);
    if (!end->empty()) surprises_.push_back(*end);
    ended_.push_back(std::move(slot.process));
    slot.process = new_worker(i);
    slot.resume_at.reset();
  }
}

bool Controller::is_for_server(Fault fault) {
  return fault == Fault::kKillClients || fault == Fault::kRestartServer ||
         fault == Fault::kFlushScripts || fault == Fault::kPauseServer;
}

void Controller::carry_out(const Draw& draw) {
  note(fmt::format("drawn: {}", to_string(draw.fault)));
  if (is_for_server(draw.fault)) {
    for_server_.push_back(draw);
  } else if (draw.fault == Fault::kKillWorker) {
    kill_worker(draw.random);
  } else if (draw.fault == Fault::kStopWorker) {
    stop_worker(draw.random);
  } else {
    cut_reply(draw.random);
  }
}

void Controller::kill_worker(std::uint64_t random) {
  Slot& slot = workers_[random % workers_.size()];
  slot.process->kill();
  ++happened_[Fault::kKillWorker];
  note(slot.process->label() + " is killed");
  look_after_workers();
}

void Controller::stop_worker(std::uint64_t random) {
  // The next one that runs; if there is none, one stays stopped for longer.
  std::size_t at = random % workers_.size();
  for (std::size_t i = 0; i < workers_.size() && workers_[at].process->is_stopped(); ++i) {
    at = (at + 1) % workers_.size();
  }
  Slot& slot = workers_[at];
  if (!slot.process->is_stopped()) slot.process->stop();
  slot.resume_at = Clock::now() + 2 * kMinIdle;
  ++happened_[Fault::kStopWorker];
  note(slot.process->label() + " is stopped");
}

void Controller::cut_reply(std::uint64_t random) {
  // After so many bytes; the reply to the next such request, or the next longer one, is cut.
  static constexpr std::array kRequests{"XREADGROUP", "XREADGROUP", "XACK", "EVALSHA"};
  static constexpr std::array<std::size_t, 4> kBytes{200, 20, 2, 4};
  const std::size_t which = random % kRequests.size();
  const std::size_t bytes = mix(random) % kBytes.at(which);
  proxy_.truncate_reply_to(kRequests.at(which), bytes, 1 + mix(random, 'n') % 8);
}

void Controller::carry_out_on_server(const Draw& draw) {
  switch (draw.fault) {
    case Fault::kKillClients:
      RawClient{server_.options()}("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
      break;
    case Fault::kFlushScripts:
      RawClient{server_.options()}("SCRIPT", "FLUSH", "SYNC");
      break;
    case Fault::kRestartServer:
      server_.kill();
      note("the server is dead");
      server_.start();
      break;
    default:
      server_.pause();
      server_paused_until_ = Clock::now() + kServerPause;
  }
  ++happened_[draw.fault];
  note(fmt::format("done: {}", to_string(draw.fault)));
}

void Controller::calm() {
  server_.resume();
  server_paused_until_.reset();
  for (Slot& slot : workers_) {
    slot.process->resume();
    slot.resume_at.reset();
  }
  note("calm");
}

void Controller::terminate_workers() {
  look_after_workers();
  for (Slot& slot : workers_) {
    if (const auto wrong = slot.process->terminate(); !wrong.empty()) surprises_.push_back(wrong);
  }
}

bool Controller::is_ready() const {
  return std::ranges::none_of(workers_,
                              [](const Slot& slot) { return slot.process->consumers().empty(); });
}

std::set<std::string> Controller::consumers() const {
  std::set<std::string> names;
  for (const Slot& slot : workers_) {
    const auto of_slot = slot.process->consumers();
    names.insert(of_slot.begin(), of_slot.end());
  }
  return names;
}

std::map<Fault, std::size_t> Controller::happened() const {
  auto happened = happened_;
  happened[Fault::kCutReply] = proxy_.acted();
  return happened;
}

std::vector<millrace::test::ProcessHistory> Controller::histories() const {
  std::vector<millrace::test::ProcessHistory> histories;
  for (const auto& process : ended_) histories.push_back(process->history());
  for (const Slot& slot : workers_) histories.push_back(slot.process->history());
  return histories;
}

}  // namespace chaos
