#include "core/batch_storage.hpp"

#include <cassert>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

namespace millrace::detail {

void BatchStorage::start_reply(std::size_t entries, std::size_t fields) {
  entries_.reserve(entries_.size() + entries);
  pages_.emplace_back().fields.reserve(fields);
}

void BatchStorage::add_entry(StreamId id) {
  const auto& fields = pages_.back().fields;
  entries_.emplace_back(id, std::span<const Field>{fields.data() + fields.size(), 0});
}

void BatchStorage::add_deleted(StreamId id) {
  entries_.emplace_back(id, std::span<const Field>{}, /*deleted=*/true);
}

void BatchStorage::add_field(std::string_view name, std::string_view value) {
  auto& fields = pages_.back().fields;
  assert(fields.size() < fields.capacity());  // growing would move the fields of earlier entries
  fields.emplace_back(name, value);
  Entry& entry = entries_.back();
  entry = Entry{entry.id(), std::span<const Field>{entry.begin(), entry.size() + 1}};
}

void BatchStorage::add_reply(std::vector<Entry> entries, std::vector<Field> fields,
                             ByteArena bytes) {
  if (entries_.empty()) {
    entries_ = std::move(entries);
  } else {
    entries_.insert(entries_.end(), entries.begin(), entries.end());
  }
  pages_.push_back({.fields = std::move(fields), .bytes = std::move(bytes)});
}

void BatchStorage::append(EntryBatch batch) {
  if (batch.storage_ == nullptr) return;
  BatchStorage& other = *batch.storage_;
  if (entries_.empty()) {
    *this = std::move(other);
    return;
  }
  entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
  pages_.insert(pages_.end(), std::make_move_iterator(other.pages_.begin()),
                std::make_move_iterator(other.pages_.end()));
}

EntryBatch BatchStorage::to_batch() && {
  if (entries_.empty()) return {};
  return EntryBatch{std::make_unique<BatchStorage>(std::move(*this))};
}

}  // namespace millrace::detail
