#include "stream/blocking_read.hpp"

#include "net/deadline.hpp"
#include "protocol/checks.hpp"
#include "protocol/decode.hpp"

#include <optional>

namespace millrace::detail {

EntryBatch blocking_read(const StreamCore& core, std::string_view command, Repeat repeat,
                         const ReadOptions& options, WriteRead write) {
  checks::read(options);
  // A repetition has the deadline of the first try, so it may wait for what is left of the block.
  std::optional<TimePoint> wait_ends;
  const auto write_rest = [&](RequestBuffer& request) {
    const auto now = Clock::system().now();
    if (!wait_ends) wait_ends = after(now, options.block);
    ReadOptions rest = options;
    rest.block = left_until(*wait_ends, now);
    write(request, rest);
  };
  try {
    return core.ask(CallSpec{.command = command,
                             .key = core.key,
                             .repeat = repeat,
                             .block = options.block,
                             .stop = options.stop},
                    write_rest, decode::read);
  } catch (const Interrupted&) {
    return {};
  } catch (const ServerError& error) {
    if (is_client_unblock(error)) return {};
    throw;
  }
}

}  // namespace millrace::detail
