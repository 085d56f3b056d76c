#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace chaos {

enum class Fault : std::uint8_t {
  kKillWorker,     ///< SIGKILL; a new one starts.
  kStopWorker,     ///< SIGSTOP for twice `min_idle`, then SIGCONT.
  kKillClients,    ///< CLIENT KILL of everyone.
  kCutReply,       ///< The proxy breaks a connection in the middle of a reply.
  kRestartServer,  ///< SIGKILL, and started again with what it had on disk.
  kFlushScripts,   ///< SCRIPT FLUSH.
  kPauseServer,    ///< SIGSTOP for 3 s.
};
inline constexpr std::array kFaults{Fault::kKillWorker, Fault::kStopWorker,    Fault::kKillClients,
                                    Fault::kCutReply,   Fault::kRestartServer, Fault::kFlushScripts,
                                    Fault::kPauseServer};
std::string_view to_string(Fault fault);

/// One fault, and a number that decides all that is open about it: who, where, which.
struct Draw {
  Fault fault{};
  std::uint64_t random = 0;
  friend bool operator==(const Draw&, const Draw&) = default;
};

/// How often each fault has to happen in a run with so many draws: 5 times in three minutes, and in
/// shorter runs in proportion, but once at least.
std::size_t required(std::size_t draws);

/// What is drawn in each second of a run; for the same seed the same. Each fault is there once more
/// often than required; which others there are, and the order of all, is random. The two that keep
/// the server away for long are rarer than the others, or little would be handled in between.
std::vector<Draw> plan(std::uint64_t seed, std::size_t draws);

}  // namespace chaos
