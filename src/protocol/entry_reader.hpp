#pragma once

#include <millrace/entry.hpp>

#include "protocol/reply.hpp"
#include "protocol/reply_bytes.hpp"
#include "protocol/reply_shape.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

class RespCursor;

/// Reads a reply that is a list of entries in one pass: fields go into one flat list, their strings
/// are views of the bytes as they came, and no element is a node of a tree.
///
/// It knows well-formed entries and nothing else. Whatever differs, by one byte, is foreign: then
/// somebody else reads all of the reply, from its first byte on. So nothing depends on this class
/// but speed.
class EntryReader {
 public:
  enum class Status : std::uint8_t {
    kMore,     ///< All bytes belong to the reply, and more are to come.
    kDone,     ///< take() has the reply.
    kForeign,  ///< Not for this class: give_up() has what came of it before these bytes.
  };

  /// `resp3`: whether replies may be in RESP3, too.
  explicit EntryReader(bool resp3) noexcept : resp3_{resp3} {}

  /// Begins with a reply of this shape, which is not kAny.
  void start(ReplyShape shape) noexcept;

  /// True from start() to take() or give_up().
  bool is_reading() const noexcept { return step_ != Step::kNone; }

  /// Takes what belongs to the reply off the front of `bytes`; nothing, if it is foreign.
  Status read(std::string_view& bytes);

  Reply take();
  std::string give_up();

 private:
  enum class Step : std::uint8_t { kNone, kHead, kEntries, kTail, kDeleted };

  Status advance();
  bool read_head(RespCursor& cursor);
  bool read_entries(RespCursor& cursor);
  bool open_entry(RespCursor& cursor);
  bool read_fields(RespCursor& cursor);
  bool read_tail(RespCursor& cursor);
  bool read_deleted(RespCursor& cursor);
  void grow_fields(std::size_t bytes_left);

  bool resp3_;
  ReplyShape shape_ = ReplyShape::kAny;
  Step step_ = Step::kNone;
  ReplyBytes bytes_;
  std::size_t wanted_ = 0;  ///< Bytes that what is half read has in all; 0: not known.

  std::size_t entries_left_ = 0;  ///< Those that are to come, an open one included.
  bool is_open_ = false;          ///< An entry has begun, and is not in `entries_` yet:
  StreamId id_;
  bool entry_is_deleted_ = false;
  std::size_t entry_fields_ = 0;
  std::size_t fields_left_ = 0;
  std::vector<Entry> entries_;  ///< Those that are complete.
  std::vector<Field> fields_;
  Reply reply_;  ///< What stands around the entries.
  Reply::Handle entry_list_ = 0;
  Reply::Handle deleted_list_ = 0;
  std::size_t deleted_left_ = 0;
};

}  // namespace millrace::detail
