#pragma once

#include <millrace/stream_options.hpp>

#include "protocol/commands.hpp"
#include "stream/stream_core.hpp"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace millrace::detail {

/// The fields that produce() puts before a payload, with the bytes of the second one.
class Envelope {
 public:
  /// Of events that are appended now, by this host's clock.
  Envelope();

  std::array<Field, 2> fields(std::string_view type) const {
    return {Field{"type", type}, Field{"ts_ms", ts_ms_}};
  }

  /// Throws InvalidArgument if a payload has a field of one of these names.
  static void check_payload(const Fields& payload);

 private:
  std::string ts_ms_;
};

/// `options` with the stream's retention where they name no trim, as of now. Throws InvalidArgument
/// for a trim that cannot work.
commands::AddTerms add_terms(const StreamCore& core, const AddOptions& options);

/// One XADD of the fields `first`, then `rest`.
std::optional<StreamId> append(const StreamCore& core, const commands::AddTerms& terms,
                               std::span<const Field> first, const Fields& rest);

/// One entry of many.
struct BatchEntry {
  std::span<const Field> first{};
  const OwnedFields* rest = nullptr;
  std::optional<Error> refused{};  ///< Why it cannot be sent. Its neighbours still are.
};

/// Many XADDs, with a result for each of `entries`. The trim goes with the last one that is sent.
std::vector<AddResult> append_batch(const StreamCore& core, const commands::AddTerms& terms,
                                    std::span<const BatchEntry> entries);

/// The id in the reply to an XADD. Throws ProtocolError if there is none, although a stream was to
/// be made.
std::optional<StreamId> added(ReplyView reply, const commands::AddTerms& terms);

/// `error`, or the UnsupportedError that it stands for: to a server that does not know an option of
/// XADD, that option is a malformed id.
Error append_error(const Error& error, const commands::AddTerms& terms);

}  // namespace millrace::detail
