#include "core/batch_storage.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

EntryBatch page_of(StreamId id, const std::string& value) {
  const std::vector<OwnedEntry> entries{{.id = id, .fields = {{"f", value}}}};
  return EntryBatch::of(entries);
}

TEST(BatchStorage, KeepsTheBytesOfEarlierRepliesWhenOneIsAppended) {
  BatchStorage storage;
  storage.append(page_of({1, 0}, "first"));
  const Entry first = storage.entries()[0];
  for (std::uint64_t i = 2; i <= 100; ++i) storage.append(page_of({i, 0}, std::to_string(i)));

  const EntryBatch batch = std::move(storage).to_batch();

  EXPECT_EQ(first.at("f"), "first");
  ASSERT_EQ(batch.size(), 100U);
  EXPECT_EQ(batch[0].at("f"), "first");
  EXPECT_EQ(batch[99].at("f"), "100");
}

TEST(BatchStorage, SkipsEmptyBatches) {
  BatchStorage storage;
  storage.append({});
  storage.append(page_of({1, 0}, "a"));
  storage.append({});

  EXPECT_EQ(std::move(storage).to_batch().size(), 1U);
}

TEST(BatchStorage, KeepsFieldsOfOneReplyTogether) {
  BatchStorage storage;
  storage.start_reply(2, 3);
  storage.add_entry({1, 0});
  storage.add_field(storage.store("a"), storage.store("1"));
  storage.add_field(storage.store("b"), storage.store("2"));
  storage.add_entry({2, 0});
  storage.add_field(storage.store("c"), storage.store("3"));
  const EntryBatch batch = std::move(storage).to_batch();

  EXPECT_EQ(batch[0].to_owned().fields, (OwnedFields{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(batch[1].to_owned().fields, (OwnedFields{{"c", "3"}}));
  EXPECT_EQ(batch[0].end(), batch[1].begin());
}

}  // namespace
}  // namespace millrace::detail
