#include <millrace/event_stream.hpp>

#include "protocol/checks.hpp"
#include "stream/stream_core.hpp"

#include <utility>

namespace millrace {

EventStream::EventStream(const ConnectionPool& pool, std::string key, StreamOptions options) {
  detail::checks::name("key of a stream", key);
  detail::checks::stream(options);
  core_ = std::make_shared<const detail::StreamCore>(
      detail::StreamCore{.pool = pool, .key = std::move(key), .options = options});
}

const std::string& EventStream::key() const noexcept { return core_->key; }
const StreamOptions& EventStream::options() const noexcept { return core_->options; }
const ConnectionPool& EventStream::pool() const noexcept { return core_->pool; }

}  // namespace millrace
