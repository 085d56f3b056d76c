#include "net/reply_reader.hpp"

#include <millrace/error.hpp>

#include "protocol/resp_cursor.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

namespace millrace::detail {
namespace {

/// hiredis moves what is left of its buffer to the front after each reply, so many replies in one
/// big feed cost the square of its size. In slices of this size they cost little.
constexpr std::size_t kSlice = std::size_t{8} << 10;

/// hiredis' buffer is kept from reply to reply unless it has grown beyond this.
constexpr std::size_t kWorthKeeping = std::size_t{1} << 20;

// Handles go through hiredis as the objects that it thinks it was given. Handle 0 is null, which
// means "out of memory" there, and is never made.
void* to_object(Reply::Handle handle) noexcept {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): never followed, only handed back
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(handle));
}

Reply::Handle parent_of(const redisReadTask* task) noexcept {
  if (task->parent == nullptr) return 0;
  return static_cast<Reply::Handle>(reinterpret_cast<std::uintptr_t>(task->parent->obj));
}

/// No exception may cross hiredis' frames: it becomes null, and hiredis says "out of memory".
template <typename Add>
void* build(const redisReadTask* task, Add add) noexcept {
  try {
    return to_object(add(*static_cast<Reply*>(task->privdata), parent_of(task)));
  } catch (...) {
    return nullptr;
  }
}

ReplyKind text_kind(int type) noexcept {
  switch (type) {
    case REDIS_REPLY_STATUS:
      return ReplyKind::kStatus;
    case REDIS_REPLY_ERROR:
      return ReplyKind::kError;
    default:
      return ReplyKind::kString;
  }
}

ReplyKind aggregate_kind(int type) noexcept {
  switch (type) {
#ifdef REDIS_REPLY_MAP
    case REDIS_REPLY_MAP:
      return ReplyKind::kMap;
    case REDIS_REPLY_ATTR:  // as with a push, nobody asked for it
    case REDIS_REPLY_PUSH:
      return ReplyKind::kPush;
#endif
    default:
      return ReplyKind::kArray;
  }
}

void* create_string(const redisReadTask* task, char* bytes, std::size_t size) noexcept {
  std::string_view text{bytes, size};
#ifdef REDIS_REPLY_VERB
  if (task->type == REDIS_REPLY_VERB) text.remove_prefix(std::min<std::size_t>(4, size));  // "txt:"
#endif
  return build(task, [&](Reply& reply, Reply::Handle parent) {
    return reply.add_text(text_kind(task->type), text, parent);
  });
}

/// `size` is int in 0.14 and size_t in 1.x.
template <typename Size>
void* create_array(const redisReadTask* task, Size size) noexcept {
  return build(task, [&](Reply& reply, Reply::Handle parent) {
    return reply.add_aggregate(aggregate_kind(task->type), static_cast<std::size_t>(size), parent);
  });
}

void* create_integer(const redisReadTask* task, long long value) noexcept {
  return build(task, [&](Reply& reply, Reply::Handle parent) {
    return reply.add_integer(ReplyKind::kInteger, value, parent);
  });
}

[[maybe_unused]] void* create_double(const redisReadTask* task, double /*value*/, char* bytes,
                                     std::size_t size) noexcept {
  return build(task, [&](Reply& reply, Reply::Handle parent) {
    return reply.add_text(ReplyKind::kDouble, {bytes, size}, parent);
  });
}

void* create_nil(const redisReadTask* task) noexcept {
  return build(task, [](Reply& reply, Reply::Handle parent) { return reply.add_nil(parent); });
}

[[maybe_unused]] void* create_bool(const redisReadTask* task, int value) noexcept {
  return build(task, [&](Reply& reply, Reply::Handle parent) {
    return reply.add_integer(ReplyKind::kBool, value != 0 ? 1 : 0, parent);
  });
}

void free_object(void*) noexcept {}  // the Reply owns everything

template <typename Functions>
constexpr bool kHasResp3 = requires(Functions functions) {
  functions.createDouble;
  functions.createBool;
};

/// Members by name, since 1.0 put new ones between the old.
template <typename Functions>
Functions make_functions() noexcept {
  Functions functions{};
  functions.createString = create_string;
  functions.createArray = create_array;  // overload resolution picks the size's type
  functions.createInteger = create_integer;
  functions.createNil = create_nil;
  functions.freeObject = free_object;
  if constexpr (kHasResp3<Functions>) {
    functions.createDouble = create_double;
    functions.createBool = create_bool;
  }
  return functions;
}

redisReplyObjectFunctions* functions() noexcept {
  static auto made = make_functions<redisReplyObjectFunctions>();
  return &made;
}

}  // namespace

void ReplyReader::Free::operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }

ReplyReader::ReplyReader() : entries_{reads_resp3()} {
  if (!start_afresh()) throw std::bad_alloc{};
}
ReplyReader::~ReplyReader() = default;

bool ReplyReader::reads_resp3() noexcept { return kHasResp3<redisReplyObjectFunctions>; }

/// With an empty buffer; false if memory ran out, and then all is as it was.
bool ReplyReader::start_afresh() noexcept {
  std::unique_ptr<redisReader, Free> reader{redisReaderCreateWithFunctions(functions())};
  if (!reader) return false;
  reader->privdata = &building_;
  reader->maxbuf = 0;  // its own cap would free the buffer at nearly every feed
  reader_ = std::move(reader);
  peak_ = 0;
  return true;
}

bool ReplyReader::is_drained() const noexcept {
  return pending_.empty() && is_between_replies() && !entries_.is_reading();
}

/// hiredis has nothing to read, and nothing half read.
bool ReplyReader::is_between_replies() const noexcept {
  return reader_->ridx == -1 && reader_->pos == reader_->len;
}

std::optional<Reply> ReplyReader::next(ReplyShape shape) {
  std::optional<Reply> reply{std::in_place};
  if (!next(*reply, shape)) reply.reset();
  return reply;
}

bool ReplyReader::next(Reply& reply, ReplyShape shape) try {
  if (reader_->err != 0) fail();
  for (;;) {
    // With nothing to read no reply is begun, or is_drained() could not tell.
    if (is_between_replies() && pending_.empty()) {
      advance();
      return false;
    }
    if (is_between_replies()) {
      if (read_short(reply) || read_entries(reply, shape)) return true;
      if (pending_.empty()) return false;  // the entries go on in what will be fed
    }
    if (!read_any(reply)) return false;
    if (reply.root().kind() != ReplyKind::kPush) return true;
    reply = {};
  }
} catch (const std::bad_alloc&) {
  fail_for_memory();
}

/// The answers to XADD and XACK, if all of it is there.
bool ReplyReader::read_short(Reply& reply) {
  if (entries_.is_reading()) return false;
  RespCursor cursor{pending_};
  std::string_view text;
  std::size_t number = 0;
  if (cursor.starts_with('$')) {
    if (!cursor.text(text) || text.size() > Reply::kShortText) return false;
    reply.become(text);
  } else if (cursor.number(':', number)) {
    reply.become(static_cast<std::int64_t>(number));
  } else {
    return false;
  }
  pending_.remove_prefix(pending_.size() - cursor.left());
  return true;
}

bool ReplyReader::read_entries(Reply& reply, ReplyShape shape) {
  if (!entries_.is_reading()) {
    if (shape == ReplyShape::kAny) return false;
    if (pending_.front() != '*' && pending_.front() != '%') return false;
    entries_.start(shape);
  }
  switch (entries_.read(pending_)) {
    case EntryReader::Status::kDone:
      reply = entries_.take();
      return true;
    case EntryReader::Status::kMore:
      break;
    case EntryReader::Status::kForeign:
      if (auto before = entries_.give_up(); !before.empty()) {
        handed_over_ = std::move(before.append(pending_));
        pending_ = handed_over_;
      }
      break;
  }
  return false;
}

/// Any reply, by hiredis.
bool ReplyReader::read_any(Reply& reply) {
  for (;;) {
    if (is_between_replies() && !advance()) return false;
    void* object = nullptr;
    if (redisReaderGetReply(reader_.get(), &object) != REDIS_OK) fail();
    if (object != nullptr) {
      reply = std::exchange(building_, Reply{});
      return true;
    }
    if (!advance()) return false;
  }
}

/// Gives hiredis the next slice; false if there is none.
bool ReplyReader::advance() {
  if (pending_.empty()) {
    if (!handed_over_.empty()) std::string{}.swap(handed_over_);
    if (peak_ > kWorthKeeping && is_drained()) start_afresh();
    return false;
  }
  const auto slice = pending_.substr(0, kSlice);
  if (redisReaderFeed(reader_.get(), slice.data(), slice.size()) != REDIS_OK) fail();
  pending_.remove_prefix(slice.size());
  peak_ = std::max(peak_, reader_->len);
  return true;
}

void ReplyReader::fail() const {
  if (reader_->err == REDIS_ERR_OOM) fail_for_memory();
  throw ProtocolError{fmt::format("the peer does not speak RESP: {}", reader_->errstr)};
}

void ReplyReader::fail_for_memory() { throw IoError{"memory ran out while a reply was read"}; }

}  // namespace millrace::detail
