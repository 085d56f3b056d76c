#include <millrace/event_stream.hpp>

#include "millrace_scripts.hpp"
#include "protocol/checks.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/decode_values.hpp"
#include "stream/stream_core.hpp"

namespace millrace {

using detail::Repeat;
using detail::RequestBuffer;

namespace checks = detail::checks;
namespace commands = detail::commands;
namespace decode = detail::decode;

namespace {

/// Calls of one trim. Each removes about 10,000 entries, so this is far above any stream's excess,
/// and still ends where producers are as fast as the trim.
constexpr int kMostRounds = 10'000;

/// Entries that one call of trim_safely's script may remove before it lets others go first.
constexpr std::string_view kSafeTrimPage = "10000";

/// What one call of trim_safely's script did.
struct Trimmed {
  std::uint64_t removed = 0;
  bool more = false;
};

Trimmed decode_trimmed(detail::ReplyView reply) {
  decode::Elements parts{reply, "the reply of the trim", "two numbers"};
  Trimmed trimmed;
  trimmed.removed = decode::count(parts.next());
  trimmed.more = decode::count(parts.next()) != 0;
  return trimmed;
}

/// Calls `round` until it has no more to do, and sums up what was removed.
template <typename Round>
std::uint64_t trim_in_rounds(Round round) {
  std::uint64_t removed = 0;
  for (int rounds = 0; rounds < kMostRounds; ++rounds) {
    try {
      const Trimmed trimmed = round();
      removed += trimmed.removed;
      if (!trimmed.more) break;
    } catch (const Error& error) {
      if (removed == 0) throw;
      detail::raise_after_a_part(error);
    }
  }
  return removed;
}

}  // namespace

std::uint64_t EventStream::trim(const Trim& trim) const {
  checks::trim(trim);
  const auto terms = commands::trim_terms(trim, std::chrono::system_clock::now());
  const bool in_rounds = !terms.exact && !terms.limit;
  return trim_in_rounds([&] {
    const std::uint64_t removed = core_->ask(
        "XTRIM", Repeat::kNever,
        [&](RequestBuffer& request) { commands::xtrim(request, core_->key, terms); },
        decode::count);
    // An approximate trim without LIMIT stops after 100 nodes, and says nothing about the rest.
    return Trimmed{.removed = removed, .more = in_rounds && removed > 0};
  });
}

std::uint64_t EventStream::trim_safely() const {
  return trim_in_rounds([&] {
    const std::string_view args[] = {kSafeTrimPage};
    return core_->run("trim_safely", detail::kTrimSafelyScript, args, decode_trimmed);
  });
}

std::size_t EventStream::erase(std::span<const StreamId> ids) const {
  checks::words("XDEL", commands::xdel_words(ids.size()));
  if (ids.empty()) return 0;
  return core_->ask(
      "XDEL", Repeat::kNever,
      [&](RequestBuffer& request) { commands::xdel(request, core_->key, ids); }, decode::count);
}

std::size_t EventStream::erase(std::initializer_list<StreamId> ids) const {
  return erase(std::span<const StreamId>{ids.begin(), ids.size()});
}

std::size_t EventStream::erase(const EntryBatch& batch) const { return erase(batch.ids()); }

bool EventStream::delete_stream() const {
  return core_->run("delete_stream", detail::kDeleteStreamScript, {}, decode::count) != 0;
}

void EventStream::set_last_id(StreamId id) const {
  core_->ask(
      "XSETID", Repeat::kNever,
      [&](RequestBuffer& request) { commands::xsetid(request, core_->key, id); },
      [](detail::ReplyView) {});
}

}  // namespace millrace
