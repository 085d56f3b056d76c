#pragma once

#include <millrace/fields.hpp>
#include <millrace/stream_options.hpp>

#include "core/clock.hpp"
#include "protocol/commands.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

/// What can never work is refused here, before a connection is borrowed for it. Each function
/// throws InvalidArgument, which names the option, its value and the rule.
namespace millrace::detail::checks {

/// A group, a consumer or a key: not empty, and not longer than an argument may be.
void name(std::string_view what, std::string_view name);

/// A command of so many words: not more than one may have.
void words(std::string_view command, std::size_t words);

/// A COUNT: from 1 to what the server can read. Zero means "all" to some commands and "none" to
/// others, so it is never sent.
void count(std::string_view option, std::size_t count);

/// XAUTOCLAIM's COUNT has a lower bound of its own.
void autoclaim_count(std::size_t count);

void min_idle(std::string_view option, Milliseconds min_idle);
void block(Milliseconds block);
void read(const ReadOptions& options);
void claim(const ClaimOptions& options, std::chrono::system_clock::time_point now);
void autoclaim(const AutoclaimOptions& options);
void pending(const PendingQuery& query);
void trim(const Trim& trim);
void stream(const StreamOptions& options);

/// What an XADD with these fields meets: no fields, or one of the limits of RequestBuffer.
void entry(const commands::AddTerms& terms, std::span<const Field> first, const Fields& rest);

/// As entry(), for one of many.
std::optional<Error> refusal(const commands::AddTerms& terms, std::span<const Field> first,
                             const Fields& rest);

}  // namespace millrace::detail::checks
