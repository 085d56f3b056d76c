#pragma once

#include <millrace/entry.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace chaos {

inline constexpr const char* kStream = "chaos";
/// Without lanes, and with them.
inline constexpr const char* kPlain = "plain";
inline constexpr const char* kOrdered = "ordered";
inline constexpr std::chrono::milliseconds kMinIdle{2'000};
inline constexpr std::uint64_t kMaxDeliveries = 5;

/// Why no handler can handle an entry.
enum class Poison : char {
  kNone = '-',
  kThrows = 't',     ///< At each start, a std::exception.
  kRetries = 'r',    ///< At each start, Verdict::retry().
  kPermanent = 'p',  ///< A PermanentError.
  kVerdict = 'v',    ///< Verdict::dead_letter().
  kAborts = 'a',     ///< The process, at each start.
};

/// What is appended, and what handlers make of it: all by the seed.
class Workload {
 public:
  Workload(std::uint64_t seed, std::uint64_t entries);

  std::uint64_t size() const noexcept { return size_; }

  /// The payload of the `number`-th entry.
  millrace::OwnedFields fields(std::uint64_t number) const;

  static constexpr std::size_t kPoisonEntries = 10;

 private:
  std::uint64_t seed_;
  std::uint64_t size_;
  std::map<std::uint64_t, Poison> poison_{};
};

/// What an entry of a Workload says of itself.
struct Task {
  std::uint64_t number = 0;
  std::uint64_t lane = 0;
  Poison poison = Poison::kNone;
  std::uint64_t random = 0;

  /// Throws std::out_of_range or std::invalid_argument where it is none.
  static Task of(const millrace::Entry& entry);

  /// True for 2 of 100 calls. No entry fails so often that it would become a dead letter.
  bool fails(std::string_view group, std::uint64_t attempt) const;
  /// Most calls take no time, some a little, and a few longer than a lease lasts.
  std::chrono::milliseconds duration(std::string_view group, std::uint64_t attempt) const;
  /// True for a handler that goes on although it should give up.
  bool ignores_stop() const { return (random & 1) != 0; }
};

}  // namespace chaos
