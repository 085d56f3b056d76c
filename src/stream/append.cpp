#include "stream/append.hpp"

#include "protocol/checks.hpp"
#include "protocol/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace millrace::detail {
namespace {

using commands::AddTerms;
using std::chrono::system_clock;

/// Whether `entry` has the fields `first`, then `rest`, and no others.
bool has_fields(const Entry& entry, std::span<const Field> first, const Fields& rest) {
  if (entry.size() != first.size() + rest.size()) return false;
  bool equal = std::equal(first.begin(), first.end(), entry.begin());
  const Field* at = entry.begin() + first.size();
  rest.for_each([&](const Field& field) { equal = equal && field == *at++; });
  return equal;
}

/// What became of an append with an exact id whose reply was lost: the id, if the entry is in the
/// stream; else throws. An entry that is not there proves nothing: the lost command may still be on
/// its way, or a trim has removed the entry again.
StreamId settle(const StreamCore& core, StreamId id, std::span<const Field> first,
                const Fields& rest, const Error& lost) {
  EntryBatch found;
  try {
    found = core.ask(
        "XRANGE", Repeat::kSafe,
        [&](RequestBuffer& request) { commands::xrange(request, core.key, id, id, 1); },
        decode::entries);
  } catch (const Error&) {
    lost.raise();
  }
  if (found.empty()) lost.raise();
  if (!has_fields(found[0], first, rest)) {
    // Another entry has this id, so this is what the lost reply said.
    core.error_of(
            "XADD",
            "ERR The ID specified in XADD is equal or smaller than the target stream top item")
        .raise();
  }
  return id;
}

/// The first option of `terms` that older servers do not have, and where it came from.
std::string_view needed_version(const AddTerms& terms) {
  if (terms.id.kind() == AddId::Kind::kAtMs) return "AddId::at_ms needs Redis 7.0 or newer";
  if (!terms.create_stream) return "AddOptions::create_stream = false needs Redis 6.2 or newer";
  if (terms.trim && (terms.trim->limit ||
                     std::holds_alternative<commands::TrimTerms::MinId>(terms.trim->threshold))) {
    return "Trim::min_id, max_age and limit need Redis 6.2 or newer";
  }
  return {};
}

}  // namespace

Envelope::Envelope()
    : ts_ms_{fmt::format(
          "{}", std::chrono::duration_cast<Milliseconds>(system_clock::now().time_since_epoch())
                    .count())} {}

void Envelope::check_payload(const Fields& payload) {
  payload.for_each([](const Field& field) {
    if (field.first == "type" || field.first == "ts_ms") {
      throw InvalidArgument{fmt::format(
          "the payload has a field '{}': produce() adds that one itself, so it needs another name",
          field.first)};
    }
  });
}

AddTerms add_terms(const StreamCore& core, const AddOptions& options) {
  AddTerms terms{.id = options.id, .create_stream = options.create_stream};
  const std::optional<Trim>& trim = options.trim ? options.trim : core.options.retention;
  if (trim) {
    checks::trim(*trim);
    terms.trim = commands::trim_terms(*trim, system_clock::now());
  }
  return terms;
}

Error append_error(const Error& error, const AddTerms& terms) {
  // "ERR" covers every mistake there is. All ids were checked here, so this text has one meaning.
  if (error.prefix() != "ERR" ||
      std::string_view{error.what()}.find(": ERR Invalid stream ID specified as stream command "
                                          "argument") == std::string_view::npos) {
    return error;
  }
  const std::string_view version = needed_version(terms);
  if (version.empty()) return error;
  return UnsupportedError{fmt::format("{} ({})", version, error.what())};
}

std::optional<StreamId> append(const StreamCore& core, const AddTerms& terms,
                               std::span<const Field> first, const Fields& rest) {
  checks::entry(terms, first, rest);
  try {
    return core.ask(
        "XADD", Repeat::kNever,
        [&](RequestBuffer& request) { commands::xadd(request, core.key, terms, first, rest); },
        decode::added);
  } catch (const ServerError& error) {
    append_error(error, terms).raise();
  } catch (const Error& error) {
    const bool settles =
        terms.id.kind() == AddId::Kind::kExact && error.outcome() == Outcome::kUnknown;
    if (!settles) throw;
    return settle(core, terms.id.id(), first, rest, error);
  }
}

}  // namespace millrace::detail
