#include "protocol/checks.hpp"
#include "protocol/server_error.hpp"
#include "stream/append.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace millrace::detail {
namespace {

using commands::AddTerms;

/// A batch goes out in pieces of at most so much: each has the whole command time-out to itself,
/// and no more than one is held as bytes.
constexpr std::size_t kMostCommands = 10'000;
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

std::size_t bytes_of(const BatchEntry& entry) {
  constexpr std::size_t kFraming = 32;  // about: lengths and line ends of a name and a value
  std::size_t bytes = 2 * kFraming;
  for (const auto& [name, value] : entry.first) bytes += name.size() + value.size() + kFraming;
  for (const auto& [name, value] : *entry.rest) bytes += name.size() + value.size() + kFraming;
  return bytes;
}

class AppendBatch {
 public:
  AppendBatch(const StreamCore& core, const AddTerms& terms, std::span<const BatchEntry> entries)
      : core_{core}, terms_{terms}, entries_{entries}, results_(entries.size()) {}

  std::vector<AddResult> run() && {
    const std::vector<std::size_t> sendable = sort_out();
    std::span<const std::size_t> left{sendable};
    while (!left.empty()) {
      const std::size_t size = piece(left);
      if (const auto error = send(left.first(size), size == left.size())) {
        fail(left.subspan(size), with_outcome(*error, Outcome::kNotApplied));
        break;
      }
      left = left.subspan(size);
    }
    return std::move(results_);
  }

 private:
  /// The indexes of what can be sent; the others get their error.
  std::vector<std::size_t> sort_out() {
    std::vector<std::size_t> sendable;
    sendable.reserve(entries_.size());
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const BatchEntry& entry = entries_[i];
      if (entry.refused) {
        results_[i].error = entry.refused;
      } else if (auto refusal = checks::refusal(terms_, entry.first, *entry.rest)) {
        results_[i].error = std::move(refusal);
      } else {
        sendable.push_back(i);
      }
    }
    return sendable;
  }

  /// How many of `left` go out together; at least one.
  std::size_t piece(std::span<const std::size_t> left) const {
    std::size_t bytes = 0;
    std::size_t size = 0;
    while (size < left.size() && size < kMostCommands) {
      bytes += bytes_of(entries_[left[size]]);
      if (size > 0 && bytes > kMostBytes) break;
      ++size;
    }
    return size;
  }

  /// Returns why the rest of the batch cannot be sent.
  std::optional<Error> send(std::span<const std::size_t> piece, bool last) {
    const auto write = [&](RequestBuffer& request) {
      AddTerms untrimmed = terms_;
      untrimmed.trim.reset();
      commands::XaddSeries series{request, core_.key, untrimmed};
      for (const std::size_t i : piece) {
        const BatchEntry& entry = entries_[i];
        if (last && i == piece.back()) {
          commands::xadd(request, core_.key, terms_, entry.first, *entry.rest);
        } else {
          series.add(entry.first, *entry.rest);
        }
      }
    };
    const auto take = [&](std::size_t index, Reply&& reply) {
      take_reply(results_[piece[index]], reply.root());
    };

    PipelineResult result;
    try {
      result =
          Pool::of(core_.pool).pipeline(CallSpec{.command = "XADD", .key = core_.key}, write, take);
    } catch (const Error& error) {
      fail(piece, error);  // there was no connection
      return error;
    }
    if (!result.error) return std::nullopt;
    const std::size_t sent = std::max(result.sent, result.replies);
    fail(piece.subspan(result.replies, sent - result.replies),
         with_outcome(*result.error, Outcome::kUnknown));
    fail(piece.subspan(sent), with_outcome(*result.error, Outcome::kNotApplied));
    return result.error;
  }

  void take_reply(AddResult& result, ReplyView reply) {
    if (reply.is_error()) {
      result.error = append_error(server_error(reply, "XADD", core_.key), terms_);
      return;
    }
    try {
      result.id = added(reply, terms_);
    } catch (const ProtocolError& error) {
      result.error =
          in_context(error, {.command = "XADD", .key = core_.key, .endpoint = reply.endpoint()});
    }
  }

  void fail(std::span<const std::size_t> indexes, const Error& error) {
    for (const std::size_t i : indexes) results_[i].error = error;
  }

  const StreamCore& core_;
  const AddTerms& terms_;
  std::span<const BatchEntry> entries_;
  std::vector<AddResult> results_;
};

}  // namespace

std::vector<AddResult> append_batch(const StreamCore& core, const AddTerms& terms,
                                    std::span<const BatchEntry> entries) {
  return AppendBatch{core, terms, entries}.run();
}

}  // namespace millrace::detail
