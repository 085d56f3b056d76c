#include <millrace/event_stream.hpp>

#include "core/batch_storage.hpp"
#include "millrace_scripts.hpp"
#include "protocol/checks.hpp"
#include "protocol/commands.hpp"
#include "protocol/decode.hpp"
#include "protocol/decode_values.hpp"
#include "stream/stream_core.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace {

using detail::Repeat;
using detail::RequestBuffer;
using detail::commands::Payload;

namespace checks = detail::checks;
namespace commands = detail::commands;
namespace decode = detail::decode;

namespace {

/// Ids a script call, so that none holds the server for long.
constexpr std::string_view kHandoverPage = "64";

/// A claim by id: what to claim, and how.
struct Claim {
  std::string_view group;
  std::string_view consumer;
  std::chrono::milliseconds min_idle;
  std::span<const StreamId> ids;
  const ClaimOptions& options;
};

template <typename Decode>
auto ask(const detail::StreamCore& core, const Claim& claim, Payload payload, Decode decode) {
  return core.ask(
      "XCLAIM", Repeat::kNever,
      [&](RequestBuffer& request) {
        commands::xclaim(request, core.key, claim.group, claim.consumer, claim.min_idle, claim.ids,
                         claim.options, payload);
      },
      decode);
}

void check(const Claim& claim, Payload payload) {
  checks::name("group", claim.group);
  checks::name("consumer", claim.consumer);
  checks::min_idle("min_idle", claim.min_idle);
  checks::claim(claim.options, std::chrono::system_clock::now());
  checks::words("XCLAIM", commands::xclaim_words(claim.ids.size(), claim.options, payload));
}

std::vector<StreamId> left_out(std::span<const StreamId> asked, std::vector<StreamId> returned) {
  std::sort(returned.begin(), returned.end());
  std::vector<StreamId> missing;
  std::copy_if(asked.begin(), asked.end(), std::back_inserter(missing), [&](StreamId id) {
    return !std::binary_search(returned.begin(), returned.end(), id);
  });
  return missing;
}

std::span<const StreamId> as_span(std::initializer_list<StreamId> ids) {
  return {ids.begin(), ids.size()};
}

template <typename Container>
void append(Container& to, const Container& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// What one call of the hand-over script did.
struct HandoverPage {
  std::string next{};  ///< Where the next one starts. Empty: this was the last.
  std::string end{};
  HandoverResult result{};
};

HandoverPage decode_handover_page(detail::ReplyView reply) {
  constexpr std::string_view kWhat = "the reply of the hand-over";
  decode::Elements parts{reply, kWhat, "two positions, a count and ids"};
  HandoverPage page;
  page.next = decode::text(parts.next(), kWhat);
  page.end = decode::text(parts.next(), kWhat);
  page.result.moved = decode::count(parts.next());
  page.result.deleted_ids = decode::ids(parts.next());
  return page;
}

}  // namespace

AutoclaimPage EventStream::autoclaim_page(std::string_view group, std::string_view consumer,
                                          const AutoclaimOptions& options) const {
  checks::name("group", group);
  checks::name("consumer", consumer);
  checks::autoclaim(options);
  const auto min_idle = options.min_idle.value_or(core_->options.claim_min_idle);
  return core_->ask(
      "XAUTOCLAIM", Repeat::kNever,
      [&](RequestBuffer& request) {
        commands::xautoclaim(request, core_->key, group, consumer, min_idle, options.start,
                             options.count);
      },
      decode::autoclaim);
}

AutoclaimResult EventStream::autoclaim(std::string_view group, std::string_view consumer,
                                       const AutoclaimOptions& options) const {
  AutoclaimResult result;
  detail::BatchStorage claimed;
  AutoclaimOptions page_options = options;
  for (std::size_t pages = 0; pages == 0 || pages < options.max_pages; ++pages) {
    try {
      AutoclaimPage page = autoclaim_page(group, consumer, page_options);
      claimed.append(std::move(page.claimed));
      append(result.deleted_ids, page.deleted_ids);
      page_options.start = page.next_cursor;
    } catch (const Error& error) {
      // What earlier pages gave is the caller's already, and is said nowhere else.
      if (pages == 0) throw;
      result.error = error;
      break;
    }
    if (page_options.start == StreamId{}) break;
  }
  result.next_cursor = page_options.start;
  result.claimed = std::move(claimed).to_batch();
  return result;
}

ClaimResult EventStream::claim(std::string_view group, std::string_view consumer,
                               std::chrono::milliseconds min_idle, std::span<const StreamId> ids,
                               const ClaimOptions& options) const {
  const Claim claim{group, consumer, min_idle, ids, options};
  check(claim, Payload::kWhole);
  if (ids.empty()) return {};
  ClaimResult result;
  result.claimed = ask(*core_, claim, Payload::kWhole, decode::entries);
  result.missing = left_out(ids, result.claimed.ids());
  return result;
}

ClaimResult EventStream::claim(std::string_view group, std::string_view consumer,
                               std::chrono::milliseconds min_idle,
                               std::initializer_list<StreamId> ids,
                               const ClaimOptions& options) const {
  return claim(group, consumer, min_idle, as_span(ids), options);
}

ClaimResult EventStream::claim(std::string_view group, std::string_view consumer,
                               std::chrono::milliseconds min_idle, const EntryBatch& batch,
                               const ClaimOptions& options) const {
  return claim(group, consumer, min_idle, batch.ids(), options);
}

std::vector<StreamId> EventStream::claim_ids(std::string_view group, std::string_view consumer,
                                             std::chrono::milliseconds min_idle,
                                             std::span<const StreamId> ids,
                                             const ClaimOptions& options) const {
  const Claim claim{group, consumer, min_idle, ids, options};
  check(claim, Payload::kIdsOnly);
  if (ids.empty()) return {};
  return ask(*core_, claim, Payload::kIdsOnly, decode::ids);
}

std::vector<StreamId> EventStream::claim_ids(std::string_view group, std::string_view consumer,
                                             std::chrono::milliseconds min_idle,
                                             std::initializer_list<StreamId> ids,
                                             const ClaimOptions& options) const {
  return claim_ids(group, consumer, min_idle, as_span(ids), options);
}

std::vector<StreamId> EventStream::claim_ids(std::string_view group, std::string_view consumer,
                                             std::chrono::milliseconds min_idle,
                                             const EntryBatch& batch,
                                             const ClaimOptions& options) const {
  return claim_ids(group, consumer, min_idle, batch.ids(), options);
}

HandoverResult EventStream::handover_pending(std::string_view group, std::string_view from,
                                             std::string_view to) const {
  checks::name("group", group);
  checks::name("consumer `from`", from);
  checks::name("consumer `to`", to);
  if (from == to) {
    throw InvalidArgument{"`from` and `to` of a hand-over are the same consumer: they must differ"};
  }
  HandoverResult result;
  std::string start = "-";
  std::string end;  // fixed by the first page
  for (std::size_t pages = 0; !start.empty(); ++pages) {
    try {
      const std::string_view args[] = {group, from, to, start, end, kHandoverPage};
      HandoverPage page = core_->run("handover_pending", detail::kHandoverPendingScript, args,
                                     decode_handover_page);
      result.moved += page.result.moved;
      append(result.deleted_ids, page.result.deleted_ids);
      start = std::move(page.next);
      end = std::move(page.end);
    } catch (const Error& error) {
      if (pages == 0) throw;
      result.error = error;
      break;
    }
  }
  return result;
}

RemoveResult EventStream::remove_consumer(std::string_view group, std::string_view consumer) const {
  checks::name("group", group);
  checks::name("consumer", consumer);
  const std::string_view args[] = {group, consumer};
  return core_->run("remove_consumer", detail::kRemoveConsumerScript, args,
                    [](detail::ReplyView reply) {
                      decode::Elements parts{reply, "the reply of the removal", "two numbers"};
                      RemoveResult result;
                      result.removed = decode::count(parts.next()) != 0;
                      result.pending = decode::count(parts.next());
                      return result;
                    });
}

}  // namespace millrace
