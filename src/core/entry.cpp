#include <millrace/entry.hpp>
#include <millrace/format.hpp>

#include "core/batch_storage.hpp"
#include "core/printable.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace millrace {

std::optional<std::string_view> Entry::find(std::string_view name) const noexcept {
  const auto* field =
      std::find_if(begin(), end(), [name](const Field& each) { return each.first == name; });
  if (field == end()) return std::nullopt;
  return field->second;
}

std::string_view Entry::at(std::string_view name) const {
  if (const auto value = find(name)) return *value;
  throw std::out_of_range{fmt::format("entry {} has no field '{}'{}", id_, detail::printable(name),
                                      deleted_ ? ": it is no longer in the stream" : "")};
}

OwnedEntry Entry::to_owned() const {
  OwnedEntry owned{.id = id_, .deleted = deleted_};
  owned.fields.reserve(size());
  for (const auto& [name, value] : *this) owned.fields.emplace_back(name, value);
  return owned;
}

EntryBatch::EntryBatch() noexcept = default;
EntryBatch::EntryBatch(EntryBatch&& other) noexcept = default;
EntryBatch& EntryBatch::operator=(EntryBatch&& other) noexcept = default;
EntryBatch::~EntryBatch() = default;

EntryBatch::EntryBatch(std::unique_ptr<detail::BatchStorage> storage) noexcept
    : storage_{std::move(storage)} {}

EntryBatch EntryBatch::of(std::span<const OwnedEntry> entries) {
  std::size_t fields = 0;
  for (const OwnedEntry& entry : entries) fields += entry.deleted ? 0 : entry.fields.size();

  detail::BatchStorage storage;
  storage.start_reply(entries.size(), fields);
  for (const OwnedEntry& entry : entries) {
    if (entry.deleted) {
      storage.add_deleted(entry.id);
      continue;
    }
    storage.add_entry(entry.id);
    for (const auto& [name, value] : entry.fields) {
      storage.add_field(storage.store(name), storage.store(value));
    }
  }
  return std::move(storage).to_batch();
}

std::size_t EntryBatch::size() const noexcept { return storage_ ? storage_->entries().size() : 0; }

const Entry* EntryBatch::begin() const noexcept {
  return storage_ ? storage_->entries().data() : nullptr;
}

std::vector<StreamId> EntryBatch::ids() const {
  std::vector<StreamId> ids;
  ids.reserve(size());
  for (const Entry& entry : *this) ids.push_back(entry.id());
  return ids;
}

}  // namespace millrace
