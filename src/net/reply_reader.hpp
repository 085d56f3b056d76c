#pragma once

#include "protocol/entry_reader.hpp"
#include "protocol/reply.hpp"
#include "protocol/reply_shape.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct redisReader;

namespace millrace::detail {

/// Turns bytes into replies, however they are cut up. hiredis parses; what it finds goes straight
/// into a Reply. What comes most is read without it, with the same result: a short string or an
/// integer that is there whole, and lists of entries.
///
///     reader.feed(bytes);
///     for (Reply reply; reader.next(reply);) take(std::move(reply));
class ReplyReader {
 public:
  ReplyReader();
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  /// Hands over bytes, which have to stay where they are until next() has found no more.
  void feed(std::string_view bytes) noexcept { pending_ = bytes; }

  /// The next whole reply, into an empty one; false when all that was fed has been read, and
  /// `reply` is as it was. `shape` is what it should look like, the same in each call until it is
  /// there; any other reply is read as well. Pushes are left out: they answer nothing. Throws
  /// ProtocolError where the bytes are not RESP, and IoError where memory ran out; nothing can be
  /// read after that.
  bool next(Reply& reply, ReplyShape shape = ReplyShape::kAny);

  /// The same, for whom a move more does not matter.
  std::optional<Reply> next(ReplyShape shape = ReplyShape::kAny);

  /// True when every byte that was fed belonged to a reply that next() has returned.
  bool is_drained() const noexcept;

  /// Whether the hiredis that this was built with knows RESP3: from 1.0 on.
  static bool reads_resp3() noexcept;

 private:
  bool start_afresh() noexcept;
  bool is_between_replies() const noexcept;
  bool read_short(Reply& reply);
  bool read_entries(Reply& reply, ReplyShape shape);
  bool read_any(Reply& reply);
  bool advance();
  [[noreturn]] void fail() const;
  [[noreturn]] static void fail_for_memory();

  struct Free {
    void operator()(redisReader* reader) const noexcept;
  };

  std::unique_ptr<redisReader, Free> reader_;
  Reply building_;
  EntryReader entries_;
  std::string handed_over_;  ///< What `pending_` refers to where `entries_` gave up half way.
  std::string_view pending_;
  std::size_t peak_ = 0;  ///< The most that hiredis' buffer held: it does not shrink by itself.
};

}  // namespace millrace::detail
