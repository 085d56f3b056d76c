#pragma once

#include <millrace/export.hpp>
#include <millrace/fields.hpp>
#include <millrace/stream_id.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace millrace {

namespace detail {
class BatchStorage;
}

/// An entry that owns its bytes.
struct OwnedEntry {
  StreamId id{};
  OwnedFields fields{};
  bool deleted = false;  ///< True for a pending entry whose payload is no longer in the stream.

  friend bool operator==(const OwnedEntry&, const OwnedEntry&) = default;
};

/// A view of one entry: a contiguous range of `const Field`. Cheap to copy; it and the strings it
/// hands out live as long as the EntryBatch it came from. to_owned() copies.
class Entry {
 public:
  Entry() = default;

  /// Of `fields` that somebody else keeps alive.
  Entry(StreamId id, std::span<const Field> fields, bool deleted = false) noexcept
      : id_{id}, fields_{fields}, deleted_{deleted} {}

  StreamId id() const noexcept { return id_; }

  /// True if the entry was still pending although its payload is no longer in the stream. It has
  /// no fields then; acknowledging it is what is left to do.
  bool deleted() const noexcept { return deleted_; }

  std::size_t size() const noexcept { return fields_.size(); }
  bool empty() const noexcept { return fields_.empty(); }
  const Field* begin() const noexcept { return fields_.data(); }
  const Field* end() const noexcept { return fields_.data() + fields_.size(); }
  const Field& operator[](std::size_t index) const noexcept { return fields_[index]; }

  /// The value of the first field with this name.
  MILLRACE_EXPORT std::optional<std::string_view> find(std::string_view name) const noexcept;

  /// As find(), but throws std::out_of_range where there is none.
  MILLRACE_EXPORT std::string_view at(std::string_view name) const;

  MILLRACE_EXPORT OwnedEntry to_owned() const;

 private:
  StreamId id_{};
  std::span<const Field> fields_{};
  bool deleted_ = false;
};

/// Entries as a read returned them, with the bytes of all replies that they came from.
///
/// Move-only. Moving keeps the views valid: `const Entry& e = b[0]; auto c = std::move(b);` leaves
/// `e` alive in `c`. Not safe to change from two threads; reading is.
class MILLRACE_EXPORT EntryBatch {
 public:
  using value_type = Entry;
  using const_iterator = const Entry*;
  using iterator = const_iterator;

  EntryBatch() noexcept;
  EntryBatch(EntryBatch&& other) noexcept;
  EntryBatch& operator=(EntryBatch&& other) noexcept;
  ~EntryBatch();

  /// A batch that owns copies of `entries`, for tests of code that takes batches.
  static EntryBatch of(std::span<const OwnedEntry> entries);

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  const Entry* begin() const noexcept;
  const Entry* end() const noexcept { return begin() + size(); }

  /// The ids of all entries, in order.
  std::vector<StreamId> ids() const;

  // A view into a temporary batch would dangle, so these need a batch that has a name.
  const Entry& operator[](std::size_t index) const& noexcept { return begin()[index]; }
  const Entry& front() const& noexcept { return begin()[0]; }
  const Entry& back() const& noexcept { return begin()[size() - 1]; }
  const Entry& operator[](std::size_t index) const&& = delete;
  const Entry& front() const&& = delete;
  const Entry& back() const&& = delete;

 private:
  friend class detail::BatchStorage;
  explicit EntryBatch(std::unique_ptr<detail::BatchStorage> storage) noexcept;

  std::unique_ptr<detail::BatchStorage> storage_;
};

}  // namespace millrace
