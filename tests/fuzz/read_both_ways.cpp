#include "fuzz/read_both_ways.hpp"

#include <millrace/error.hpp>
#include <millrace/format.hpp>

#include "net/reply_reader.hpp"
#include "protocol/decode.hpp"
#include "protocol/decode_values.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <memory>
#include <optional>
#include <utility>

namespace millrace::test {
namespace {

using detail::Reply;
using detail::ReplyKind;
using detail::ReplyShape;
using detail::ReplyView;
namespace decode = detail::decode;

std::string in_words(const EntryBatch& batch) {
  std::string words;
  for (const Entry& entry : batch) {
    words += fmt::format("{}{}(", entry.id(), entry.deleted() ? " deleted" : "");
    for (const auto& [name, value] : entry) words += fmt::format("{}={};", name, value);
    words += ") ";
  }
  return fmt::format("{} entries: {}", batch.size(), words);
}

std::string in_words(ReplyView reply) {
  auto words = fmt::format("{} '{}' {}[", decode::describe(reply), reply.text(), reply.integer());
  for (const ReplyView each : reply) words += in_words(each) + ", ";
  return words + "]";
}

std::string in_words(ReplyShape shape, Reply reply) try {
  switch (shape) {
    case ReplyShape::kAny:
      return in_words(reply.root());
    case ReplyShape::kEntries:
      return in_words(decode::entries(std::move(reply)));
    case ReplyShape::kRead:
      return in_words(decode::read(std::move(reply)));
    case ReplyShape::kAutoclaim:
      break;
  }
  const AutoclaimPage page = decode::autoclaim(std::move(reply));
  return fmt::format("{}, next {}, deleted {}", in_words(page.claimed), page.next_cursor,
                     fmt::join(page.deleted_ids, " "));
} catch (const Error& error) {
  return error.what();
}

/// `next` gives the replies of a piece, one after another, and throws where they are none.
template <typename Feed, typename Next>
std::string read_in_pieces(ReplyShape shape, std::string_view bytes, Cut& cut, Feed feed,
                           Next next) {
  std::string words;
  while (!bytes.empty()) {
    // A copy of its own, so that a view of it that outlives the piece is found out.
    const std::string piece{bytes.substr(0, cut(bytes.size()))};
    bytes.remove_prefix(piece.size());
    try {
      feed(piece);
      while (std::optional<Reply> reply = next()) {
        words += in_words(shape, std::move(*reply)) + "\n";
      }
    } catch (const Error& error) {
      return words + error.what();
    }
    words += "|";
  }
  return words;
}

ReplyKind kind_of(int type) {
  switch (type) {
    case REDIS_REPLY_STATUS:
      return ReplyKind::kStatus;
    case REDIS_REPLY_ERROR:
      return ReplyKind::kError;
#ifdef REDIS_REPLY_MAP
    case REDIS_REPLY_MAP:
      return ReplyKind::kMap;
    case REDIS_REPLY_ATTR:
    case REDIS_REPLY_PUSH:
      return ReplyKind::kPush;
    case REDIS_REPLY_DOUBLE:
      return ReplyKind::kDouble;
#endif
    default:
      return ReplyKind::kString;
  }
}

void add(const redisReply& from, Reply& to, Reply::Handle parent) {
  switch (from.type) {
    case REDIS_REPLY_INTEGER:
      to.add_integer(ReplyKind::kInteger, from.integer, parent);
      return;
    case REDIS_REPLY_NIL:
      to.add_nil(parent);
      return;
#ifdef REDIS_REPLY_MAP
    case REDIS_REPLY_BOOL:
      to.add_integer(ReplyKind::kBool, from.integer, parent);
      return;
    case REDIS_REPLY_MAP:
    case REDIS_REPLY_SET:
    case REDIS_REPLY_ATTR:
    case REDIS_REPLY_PUSH:
#endif
    case REDIS_REPLY_ARRAY: {
      const ReplyKind kind =
          kind_of(from.type) == ReplyKind::kString ? ReplyKind::kArray : kind_of(from.type);
      const auto handle = to.add_aggregate(kind, from.elements, parent);
      for (std::size_t i = 0; i < from.elements; ++i) add(*from.element[i], to, handle);
      return;
    }
    default:
      to.add_text(kind_of(from.type), {from.str, static_cast<std::size_t>(from.len)}, parent);
  }
}

}  // namespace

std::string read_by_us(ReplyShape shape, std::string_view bytes, Cut cut) {
  detail::ReplyReader reader;
  return read_in_pieces(
      shape, bytes, cut, [&](std::string_view piece) { reader.feed(piece); },
      [&] { return reader.next(shape); });
}

std::string read_by_hiredis(ReplyShape shape, std::string_view bytes, Cut cut) {
  const std::unique_ptr<redisReader, void (*)(redisReader*)> reader{redisReaderCreate(),
                                                                    redisReaderFree};
  return read_in_pieces(
      shape, bytes, cut,
      [&](std::string_view piece) { redisReaderFeed(reader.get(), piece.data(), piece.size()); },
      [&]() -> std::optional<Reply> {
        for (;;) {
          void* object = nullptr;
          if (redisReaderGetReply(reader.get(), &object) != REDIS_OK) {
            throw ProtocolError{
                fmt::format("the peer does not speak RESP: {}", reader.get()->errstr)};
          }
          if (object == nullptr) return std::nullopt;
          const std::unique_ptr<void, void (*)(void*)> freed{object, freeReplyObject};
          Reply reply;
          add(*static_cast<redisReply*>(object), reply, 0);
          if (reply.root().kind() != ReplyKind::kPush) return reply;
        }
      });
}

bool is_affordable(std::string_view bytes) {
  constexpr std::size_t kMostDigits = 4;
  std::size_t digits = 0;
  bool is_count = false;
  for (const char letter : bytes) {
    if (letter >= '0' && letter <= '9') {
      if (++digits > kMostDigits && is_count) return false;
    } else {
      is_count = std::string_view{"*%~>|+"}.find(letter) != std::string_view::npos;
      digits = 0;
    }
  }
  return true;
}

}  // namespace millrace::test
