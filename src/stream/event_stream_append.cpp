#include <millrace/event_stream.hpp>

#include "stream/append.hpp"
#include "stream/stream_core.hpp"

#include <array>

namespace millrace {

using detail::BatchEntry;
using detail::Envelope;

StreamId EventStream::produce(std::string_view type, Fields payload) const {
  Envelope::check_payload(payload);
  const Envelope envelope;
  return append(*core_, add_terms(*core_, {}), envelope.fields(type), payload).value();
}

std::vector<AddResult> EventStream::produce_batch(std::span<const Event> events) const {
  const Envelope envelope;
  std::vector<std::array<Field, 2>> firsts;
  std::vector<BatchEntry> entries;
  firsts.reserve(events.size());  // entries refer to it
  entries.reserve(events.size());
  for (const Event& event : events) {
    BatchEntry entry{.first = firsts.emplace_back(envelope.fields(event.type)),
                     .rest = &event.payload};
    try {
      Envelope::check_payload(event.payload);
    } catch (const InvalidArgument& error) {
      entry.refused = error;
    }
    entries.push_back(std::move(entry));
  }
  return append_batch(*core_, add_terms(*core_, {}), entries);
}

std::optional<StreamId> EventStream::add(Fields fields, const AddOptions& options) const {
  return append(*core_, add_terms(*core_, options), {}, fields);
}

std::vector<AddResult> EventStream::add_batch(std::span<const OwnedFields> entries,
                                              const AddOptions& options) const {
  if (options.id.kind() == AddId::Kind::kExact) {
    throw InvalidArgument{
        "AddOptions::id is an exact id: it can name one entry, so a batch has to go without"};
  }
  std::vector<BatchEntry> batch;
  batch.reserve(entries.size());
  for (const OwnedFields& fields : entries) batch.push_back({.rest = &fields});
  return append_batch(*core_, add_terms(*core_, options), batch);
}

}  // namespace millrace
