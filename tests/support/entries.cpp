#include "support/entries.hpp"

namespace millrace::test {

std::string text(const OwnedEntry& entry) {
  std::string out = entry.id.to_string() + '[';
  if (entry.deleted) out += "deleted";
  for (std::size_t i = 0; i < entry.fields.size(); ++i) {
    if (i > 0) out += ' ';
    out += entry.fields[i].first + '=' + entry.fields[i].second;
  }
  return out + ']';
}

std::string text(const Entry& entry) { return text(entry.to_owned()); }

std::string text(const EntryBatch& batch) {
  std::string out;
  for (const Entry& entry : batch) {
    if (!out.empty()) out += ' ';
    out += text(entry);
  }
  return out;
}

std::string text(const std::vector<PendingEntry>& entries) {
  std::string out;
  for (const PendingEntry& entry : entries) {
    if (!out.empty()) out += ", ";
    out += entry.id.to_string() + ' ' + entry.consumer + ' ' + std::to_string(entry.deliveries);
  }
  return out;
}

std::string pending_text(const EventStream& stream, std::string_view group) {
  return text(stream.pending_entries(group));
}

void append(const EventStream& stream, const Ids& ids) {
  for (const StreamId& id : ids) stream.add({{"f", "v"}}, {.id = AddId::exactly(id)});
}

}  // namespace millrace::test
