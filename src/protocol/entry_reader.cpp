#include "protocol/entry_reader.hpp"

#include "core/batch_storage.hpp"
#include "protocol/resp_cursor.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace millrace::detail {
namespace {

// The least that these take on the wire: memory follows the bytes that came, not what is announced.
constexpr std::size_t kLeastEntry = std::string_view{"*2\r\n$3\r\n0-1\r\n*0\r\n"}.size();
constexpr std::size_t kLeastField = std::string_view{"$0\r\n\r\n$0\r\n\r\n"}.size();

constexpr Reply::Handle kRoot = 1;

}  // namespace

void EntryReader::start(ReplyShape shape) noexcept {
  shape_ = shape;
  step_ = Step::kHead;
  wanted_ = 0;
}

EntryReader::Status EntryReader::read(std::string_view& bytes) {
  bytes_.add(bytes, wanted_);
  const Status status = advance();
  if (status == Status::kMore) bytes = {};
  if (status == Status::kDone) bytes.remove_prefix(bytes.size() - bytes_.unread().size());
  return status;
}

/// Each step reads as much as it can, and what it has read it does not read again.
EntryReader::Status EntryReader::advance() {
  for (;;) {
    RespCursor cursor{bytes_.unread()};
    bool is_complete = false;
    switch (step_) {
      case Step::kHead:
        is_complete = read_head(cursor);
        break;
      case Step::kEntries:
        is_complete = read_entries(cursor);
        break;
      case Step::kTail:
        is_complete = read_tail(cursor);
        break;
      case Step::kDeleted:
        is_complete = read_deleted(cursor);
        break;
      case Step::kNone:
        return Status::kDone;
    }
    if (!is_complete) {
      wanted_ = cursor.missing() == 0 ? 0 : bytes_.unread().size() + cursor.missing();
      return cursor.is_foreign() ? Status::kForeign : Status::kMore;
    }
    if (step_ == Step::kNone) return Status::kDone;
  }
}

bool EntryReader::read_head(RespCursor& cursor) {
  std::string_view key;
  switch (shape_) {
    case ReplyShape::kAny:
      return cursor.foreign();
    case ReplyShape::kEntries:
      break;
    case ReplyShape::kRead:
      if (resp3_ && cursor.starts_with('%')) {
        if (!cursor.exactly('%', 1)) return false;
      } else if (!cursor.exactly('*', 1) || !cursor.exactly('*', 2)) {
        return false;
      }
      if (!cursor.text(key)) return false;
      break;
    case ReplyShape::kAutoclaim:
      if (!cursor.exactly('*', 3) || !cursor.text(key)) return false;
      break;
  }
  if (!cursor.number('*', entries_left_)) return false;
  bytes_.read_to(cursor.at());

  Reply::Handle root = 0;
  if (shape_ == ReplyShape::kAutoclaim) {
    root = reply_.add_aggregate(ReplyKind::kArray, 3, 0);  // kRoot
    reply_.add_text(ReplyKind::kString, key, root);
  }
  entry_list_ = reply_.add_entries(root);
  entries_.reserve(std::min(entries_left_, cursor.left() / kLeastEntry + 1));
  step_ = Step::kEntries;
  return true;
}

bool EntryReader::read_entries(RespCursor& cursor) {
  for (; entries_left_ > 0; --entries_left_) {
    if (!is_open_ && !open_entry(cursor)) return false;
    if (!read_fields(cursor)) return false;
    entries_.emplace_back(id_, std::span{fields_}.last(entry_fields_), entry_is_deleted_);
    is_open_ = false;
  }
  step_ = shape_ == ReplyShape::kAutoclaim ? Step::kTail : Step::kNone;
  return true;
}

/// As far as its first field.
bool EntryReader::open_entry(RespCursor& cursor) {
  std::size_t words = 0;
  if (!cursor.exactly('*', 2) || !cursor.id(id_)) return false;
  // A pending entry whose payload is gone.
  entry_is_deleted_ = cursor.is_at_null();
  if (!(entry_is_deleted_ ? cursor.null() : cursor.number('*', words))) return false;
  if (words % 2 != 0) return cursor.foreign();
  entry_fields_ = fields_left_ = words / 2;
  is_open_ = true;
  bytes_.read_to(cursor.at());
  return true;
}

bool EntryReader::read_fields(RespCursor& cursor) {
  for (; fields_left_ > 0; --fields_left_) {
    std::string_view name;
    std::string_view value;
    if (!cursor.text(name) || !cursor.text(value)) return false;
    if (fields_.size() == fields_.capacity()) grow_fields(cursor.left());
    fields_.emplace_back(name, value);
    bytes_.read_to(cursor.at());
  }
  return true;
}

/// For as many as there may be in this reply, if the others are as the one that is half read, and
/// in so many bytes. The entries follow their fields.
void EntryReader::grow_fields(std::size_t bytes_left) {
  const std::size_t expected = std::min(fields_left_ * entries_left_, bytes_left / kLeastField + 1);
  std::vector<Field> grown;
  grown.reserve(fields_.size() + std::max(fields_.size(), expected));
  grown.insert(grown.end(), fields_.begin(), fields_.end());
  const Field* at = grown.data();
  for (Entry& entry : entries_) {
    entry = Entry{entry.id(), std::span{at, entry.size()}, entry.deleted()};
    at += entry.size();
  }
  fields_ = std::move(grown);
}

/// The ids that XAUTOCLAIM found in no stream.
bool EntryReader::read_tail(RespCursor& cursor) {
  if (!cursor.number('*', deleted_left_)) return false;
  bytes_.read_to(cursor.at());
  deleted_list_ = reply_.add_aggregate(ReplyKind::kArray, deleted_left_, kRoot);
  step_ = Step::kDeleted;
  return true;
}

bool EntryReader::read_deleted(RespCursor& cursor) {
  for (; deleted_left_ > 0; --deleted_left_) {
    std::string_view id;
    if (!cursor.text(id)) return false;
    bytes_.read_to(cursor.at());
    reply_.add_text(ReplyKind::kString, id, deleted_list_);
  }
  step_ = Step::kNone;
  return true;
}

Reply EntryReader::take() {
  BatchStorage storage;
  storage.add_reply(std::exchange(entries_, {}), std::exchange(fields_, {}), bytes_.release());
  reply_.keep_entries(entry_list_, std::move(storage).to_batch());
  return std::exchange(reply_, {});
}

std::string EntryReader::give_up() {
  auto bytes = bytes_.before_last_piece();
  bytes_.release();
  entries_.clear();
  fields_.clear();
  reply_ = {};
  fields_left_ = 0;
  is_open_ = false;
  step_ = Step::kNone;
  return bytes;
}

}  // namespace millrace::detail
