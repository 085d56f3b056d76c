#include "workload.hpp"

#include "mix.hpp"

#include <array>

namespace chaos {
namespace {

constexpr std::uint64_t kLanes = 64;
/// Beyond it, a failure by chance and a crash or two of the process could come to max_deliveries.
constexpr std::uint64_t kLastToFail = 2;

constexpr std::array kPoison{
    Poison::kAborts,  Poison::kThrows,    Poison::kThrows,    Poison::kThrows,  Poison::kThrows,
    Poison::kRetries, Poison::kPermanent, Poison::kPermanent, Poison::kVerdict, Poison::kVerdict};
static_assert(kPoison.size() == Workload::kPoisonEntries);

std::uint64_t mix_call(std::uint64_t random, std::string_view group, std::uint64_t attempt,
                       std::uint64_t what) {
  return mix(random, static_cast<std::uint64_t>(group.front()), attempt, what);
}

}  // namespace

Workload::Workload(std::uint64_t seed, std::uint64_t entries) : seed_{seed}, size_{entries} {
  // One in each part of the run.
  const std::uint64_t part = entries / kPoison.size();
  const std::uint64_t turn = mix(seed, 'o') % kPoison.size();
  for (std::size_t i = 0; i < kPoison.size(); ++i) {
    poison_[i * part + mix(seed, 'i', i) % part] = kPoison[(i + turn) % kPoison.size()];
  }
}

millrace::OwnedFields Workload::fields(std::uint64_t number) const {
  const std::uint64_t random = mix(seed_, 'e', number);
  const auto poison = poison_.find(number);
  const Poison kind = poison == poison_.end() ? Poison::kNone : poison->second;
  return {{"n", std::to_string(number)},
          {"lane", std::to_string(random % kLanes)},
          {"r", std::to_string(mix(random))},
          {"poison", std::string(1, static_cast<char>(kind))}};
}

Task Task::of(const millrace::Entry& entry) {
  return {.number = std::stoull(std::string{entry.at("n")}),
          .lane = std::stoull(std::string{entry.at("lane")}),
          .poison = static_cast<Poison>(entry.at("poison").at(0)),
          .random = std::stoull(std::string{entry.at("r")})};
}

bool Task::fails(std::string_view group, std::uint64_t attempt) const {
  return attempt <= kLastToFail && mix_call(random, group, attempt, 'f') % 100 < 2;
}

std::chrono::milliseconds Task::duration(std::string_view group, std::uint64_t attempt) const {
  const std::uint64_t lot = mix_call(random, group, attempt, 'd') % 10'000;
  if (lot < 3) return kMinIdle + kMinIdle / 4;
  return std::chrono::milliseconds{lot < 500 ? 10 : 0};
}

}  // namespace chaos
