#pragma once

#include <cstdint>

namespace chaos {

/// The same on every machine, unlike what <random> distributes. (The finalizer of SplitMix64.)
inline std::uint64_t mix(std::uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31);
}

template <typename... More>
std::uint64_t mix(std::uint64_t first, std::uint64_t second, More... more) {
  return mix(mix(first) ^ second, more...);
}

/// Numbers one after another.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_{seed} {}
  std::uint64_t operator()() { return mix(state_++); }

 private:
  std::uint64_t state_;
};

}  // namespace chaos
