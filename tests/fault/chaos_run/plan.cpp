#include "plan.hpp"

#include "mix.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace chaos {
namespace {

/// In the order of kFaults.
constexpr std::array<std::size_t, kFaults.size()> kWeights{6, 5, 8, 8, 1, 5, 1};

Fault weighted(std::uint64_t random) {
  std::size_t rest = random % std::accumulate(kWeights.begin(), kWeights.end(), std::size_t{0});
  std::size_t at = 0;
  while (rest >= kWeights[at]) rest -= kWeights[at++];
  return kFaults[at];
}

}  // namespace

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kKillWorker:
      return "SIGKILL of a worker";
    case Fault::kStopWorker:
      return "SIGSTOP of a worker";
    case Fault::kKillClients:
      return "CLIENT KILL of everyone";
    case Fault::kCutReply:
      return "cut in mid-reply";
    case Fault::kRestartServer:
      return "SIGKILL of the server";
    case Fault::kFlushScripts:
      return "SCRIPT FLUSH";
    case Fault::kPauseServer:
      return "pause of 3 s";
  }
  return "?";
}

std::size_t required(std::size_t draws) { return std::clamp<std::size_t>(draws * 5 / 180, 1, 5); }

std::vector<Draw> plan(std::uint64_t seed, std::size_t draws) {
  Random random{mix(seed, 'p')};
  std::vector<Draw> plan;
  for (const Fault fault : kFaults) {
    for (std::size_t i = 0; i < required(draws) + 1; ++i) plan.push_back({fault, random()});
  }
  while (plan.size() < draws) {
    const Fault fault = weighted(random());
    plan.push_back({fault, random()});
  }
  // std::shuffle is another one in another library.
  for (std::size_t i = plan.size(); i > 1; --i) std::swap(plan[i - 1], plan[random() % i]);
  return plan;
}

}  // namespace chaos
