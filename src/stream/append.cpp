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

std::optional<StreamId> add_once(const StreamCore& core, const AddTerms& terms,
                                 std::span<const Field> first, const Fields& rest) {
  return core.ask(
      "XADD", Repeat::kNever,
      [&](RequestBuffer& request) { commands::xadd(request, core.key, terms, first, rest); },
      [&](ReplyView reply) { return added(reply, terms); });
}

/// An append with an exact id whose reply was lost, once more: it cannot be appended twice. Where
/// the server refuses it now, the stream tells whether the first one arrived. An entry that is not
/// there proves nothing, since it may have been trimmed or deleted: then `lost` is thrown.
std::optional<StreamId> add_again(const StreamCore& core, const AddTerms& terms,
                                  std::span<const Field> first, const Fields& rest,
                                  const Error& lost) {
  std::optional<Error> refusal;
  try {
    return add_once(core, terms, first, rest);
  } catch (const ServerError& error) {
    refusal = error;
  } catch (const Error&) {
    lost.raise();
  }
  const StreamId id = terms.id.id();
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
  if (!has_fields(found[0], first, rest)) refusal->raise();  // another entry has this id
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

std::optional<StreamId> added(ReplyView reply, const AddTerms& terms) {
  const auto id = decode::added(reply);
  if (!id && terms.create_stream) {
    throw ProtocolError{"the reply is null, although the stream was to be made"};
  }
  return id;
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
    return add_once(core, terms, first, rest);
  } catch (const ServerError& error) {
    append_error(error, terms).raise();
  } catch (const Error& error) {
    const bool repeatable =
        terms.id.kind() == AddId::Kind::kExact && error.outcome() == Outcome::kUnknown;
    if (!repeatable) throw;
    return add_again(core, terms, first, rest, error);
  }
}

}  // namespace millrace::detail
