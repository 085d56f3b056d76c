#pragma once

#include <millrace/fields.hpp>
#include <millrace/stream_options.hpp>

#include "core/clock.hpp"
#include "protocol/request.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

/// Each function writes one command, in the syntax of Redis 7.0. They check nothing: checks.hpp
/// says what can never work, before a connection is borrowed for it.
namespace millrace::detail::commands {

/// A trim as the server knows it: an age has become an id.
struct TrimTerms {
  struct MaxLen {
    std::uint64_t count;
  };
  struct MinId {
    StreamId id;
  };
  std::variant<MaxLen, MinId> threshold;
  bool exact = false;
  std::optional<std::uint64_t> limit{};
};

TrimTerms trim_terms(const Trim& trim, std::chrono::system_clock::time_point now);

/// What an XADD says besides its fields.
struct AddTerms {
  AddId id = AddId::automatic();
  std::optional<TrimTerms> trim{};
  bool create_stream = true;
};

/// How many words a command has, for those whose size its caller decides.
std::size_t xadd_words(const AddTerms& terms, std::size_t fields);

/// The fields `first`, then `rest`.
void xadd(RequestBuffer& request, std::string_view key, const AddTerms& terms,
          std::span<const Field> first, const Fields& rest);

/// XADDs for one key and with the same terms, at least one field each: what they have in common is
/// worked out once for those that follow one another with as many fields.
class XaddSeries {
 public:
  /// All three outlive this, and nobody else writes to `request` meanwhile but whole commands.
  XaddSeries(RequestBuffer& request, std::string_view key, const AddTerms& terms) noexcept
      : request_{request}, key_{key}, terms_{terms} {}

  void add(std::span<const Field> first, const Fields& rest);

 private:
  RequestBuffer& request_;
  std::string_view key_;
  const AddTerms& terms_;
  std::size_t fields_ = 0;  ///< Of the last one, of which
  std::size_t start_ = 0;   ///< what stands before its fields begins here,
  std::size_t size_ = 0;    ///< and has so many bytes.
};

/// The XADD that xadd() wrote as `plain`, without a trim, for this key and so many fields; now with
/// `trim`.
void xadd_with_trim(RequestBuffer& request, std::string_view key, const TrimTerms& trim,
                    std::string_view plain, std::size_t fields);

/// A `block` of 0 sends no BLOCK, since the server takes 0 as "for ever".
void xread(RequestBuffer& request, std::string_view key, StreamId after,
           const ReadOptions& options);

/// New entries (`>`).
void xreadgroup(RequestBuffer& request, std::string_view key, std::string_view group,
                std::string_view consumer, const ReadOptions& options);

/// The consumer's own pending entries above `after`, which must not be StreamId::max(): the server
/// takes that id for `>`.
void xreadgroup_pending(RequestBuffer& request, std::string_view key, std::string_view group,
                        std::string_view consumer, StreamId after, std::size_t count);

inline std::size_t xack_words(std::size_t ids) { return 3 + ids; }
void xack(RequestBuffer& request, std::string_view key, std::string_view group,
          std::span<const StreamId> ids);

void xpending(RequestBuffer& request, std::string_view key, std::string_view group);

void xpending_entries(RequestBuffer& request, std::string_view key, std::string_view group,
                      const PendingQuery& query);

/// What a claim answers with.
enum class Payload : bool {
  kWhole,
  kIdsOnly,  ///< JUSTID: and delivery counts are kept.
};

std::size_t xclaim_words(std::size_t ids, const ClaimOptions& options, Payload payload);
void xclaim(RequestBuffer& request, std::string_view key, std::string_view group,
            std::string_view consumer, Milliseconds min_idle, std::span<const StreamId> ids,
            const ClaimOptions& options, Payload payload);

void xautoclaim(RequestBuffer& request, std::string_view key, std::string_view group,
                std::string_view consumer, Milliseconds min_idle, StreamId start,
                std::size_t count);

/// True for a range that lies beyond the first or the last possible id. It is empty, but the server
/// answers it with an error, so it must not be sent.
bool is_beyond_all_ids(const RangeStart& start, const RangeEnd& end);

void xrange(RequestBuffer& request, std::string_view key, const RangeStart& start,
            const RangeEnd& end, std::size_t count);

void xrevrange(RequestBuffer& request, std::string_view key, const RangeEnd& end,
               const RangeStart& start, std::size_t count);

void xtrim(RequestBuffer& request, std::string_view key, const TrimTerms& terms);
inline std::size_t xdel_words(std::size_t ids) { return 2 + ids; }
void xdel(RequestBuffer& request, std::string_view key, std::span<const StreamId> ids);
void xlen(RequestBuffer& request, std::string_view key);
void xsetid(RequestBuffer& request, std::string_view key, StreamId id);

void xinfo_stream(RequestBuffer& request, std::string_view key);
void xinfo_stream_full(RequestBuffer& request, std::string_view key, std::size_t count);
void xinfo_groups(RequestBuffer& request, std::string_view key);
void xinfo_consumers(RequestBuffer& request, std::string_view key, std::string_view group);

/// With MKSTREAM.
void xgroup_create(RequestBuffer& request, std::string_view key, std::string_view group,
                   const GroupStart& start);
void xgroup_setid(RequestBuffer& request, std::string_view key, std::string_view group,
                  const GroupStart& start);
void xgroup_destroy(RequestBuffer& request, std::string_view key, std::string_view group);
void xgroup_createconsumer(RequestBuffer& request, std::string_view key, std::string_view group,
                           std::string_view consumer);

}  // namespace millrace::detail::commands
