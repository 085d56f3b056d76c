#pragma once

#include <millrace/entry.hpp>

#include "core/byte_arena.hpp"

#include <cstddef>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// What an EntryBatch owns: entries, and for each reply that they came from its fields and bytes.
///
/// A reply goes in whole: start_reply() with its exact size, then each entry with its fields, then
/// keep() with the bytes that all of it refers to. Adding another reply leaves the fields and bytes
/// of earlier ones where they are; only references to Entry objects themselves move.
class BatchStorage {
 public:
  /// Makes room for `entries` entries with `fields` fields in all: one allocation each.
  void start_reply(std::size_t entries, std::size_t fields);
  void add_entry(StreamId id);
  void add_deleted(StreamId id);
  /// Of the entry that was added last. No more than start_reply() was told.
  void add_field(std::string_view name, std::string_view value);
  /// Copies what a field refers to, where no reply owns it.
  std::string_view store(std::string_view bytes) { return pages_.back().bytes.store(bytes); }
  void keep(ByteArena bytes) { pages_.back().bytes = std::move(bytes); }

  /// A whole reply in one step: `entries`, which refer to `fields`, which refer to `bytes`.
  void add_reply(std::vector<Entry> entries, std::vector<Field> fields, ByteArena bytes);

  /// Takes over all that `batch` owns, behind what is here.
  void append(EntryBatch batch);

  EntryBatch to_batch() &&;

  const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  struct Page {
    std::vector<Field> fields{};
    ByteArena bytes{};
  };

  std::vector<Entry> entries_;
  std::vector<Page> pages_;
};

}  // namespace millrace::detail
