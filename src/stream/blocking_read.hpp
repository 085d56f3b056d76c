#pragma once

#include <millrace/entry.hpp>
#include <millrace/stream_options.hpp>

#include "stream/stream_core.hpp"

namespace millrace::detail {

/// Writes a read that may wait for as long as `options.block` says now.
using WriteRead = FunctionRef<void(RequestBuffer&, const ReadOptions& options)>;

/// One read that may wait, whose wait `options.stop` or CLIENT UNBLOCK can end: empty then. Throws
/// InvalidArgument for options that cannot work.
EntryBatch blocking_read(const StreamCore& core, std::string_view command, Repeat repeat,
                         const ReadOptions& options, WriteRead write);

}  // namespace millrace::detail
