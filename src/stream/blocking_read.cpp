#include "stream/blocking_read.hpp"

#include "protocol/checks.hpp"
#include "protocol/decode.hpp"

namespace millrace::detail {

EntryBatch blocking_read(const StreamCore& core, std::string_view command, Repeat repeat,
                         const ReadOptions& options, WriteRequest write) {
  checks::read(options);
  try {
    return core.ask(CallSpec{.command = command,
                             .key = core.key,
                             .repeat = repeat,
                             .block = options.block,
                             .stop = options.stop},
                    write, decode::read);
  } catch (const Interrupted&) {
    return {};
  } catch (const ServerError& error) {
    if (is_client_unblock(error)) return {};
    throw;
  }
}

}  // namespace millrace::detail
