#pragma once

#include <cstdint>
#include <string_view>

namespace pipeline {

/// FNV-1a over all fields, in order, with their sizes: it differs as soon as one byte does.
template <typename FieldRange>
std::uint64_t checksum(const FieldRange& fields) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto mix = [&hash](std::uint64_t byte) { hash = (hash ^ byte) * 0x100000001b3U; };
  const auto mix_text = [&mix](std::string_view text) {
    mix(text.size());
    for (const char c : text) mix(static_cast<unsigned char>(c));
  };
  for (const auto& [name, value] : fields) {
    mix_text(name);
    mix_text(value);
  }
  return hash;
}

}  // namespace pipeline
