#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class BinarySafety : public StreamTest {
 protected:
  /// Appended and read back.
  OwnedFields there_and_back(const OwnedFields& fields) {
    s().add(fields);
    return s().tail(1).begin()->to_owned().fields;
  }

  static std::string all_bytes() {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
    return bytes;
  }
};

TEST_P(BinarySafety, EveryByteIsABytesWorth) {
  OwnedFields fields{{all_bytes(), all_bytes()}};
  for (int byte = 0; byte < 256; ++byte) {
    const std::string alone(1, static_cast<char>(byte));
    fields.emplace_back(alone, alone);
  }
  EXPECT_EQ(there_and_back(fields), fields);
}

TEST_P(BinarySafety, NamesAndValuesMayBeEmpty) {
  const OwnedFields fields{{"", ""}, {"name", ""}, {"", "value"}, {"", ""}};
  EXPECT_EQ(there_and_back(fields), fields);
}

TEST_P(BinarySafety, ProtocolBytesArePayloadToo) {
  const OwnedFields fields{
      {"\r\n", "$-1\r\n"}, {"*2\r\n$1\r\na\r\n", "+OK\r\n\r\n"}, {"-", "_\r\n"}};
  EXPECT_EQ(there_and_back(fields), fields);
}

TEST_P(BinarySafety, RepeatedNamesKeepTheirPlaces) {
  const OwnedFields fields{{"f", "1"}, {"g", "2"}, {"f", "1"}, {"f", "3"}, {"g", ""}};
  EXPECT_EQ(there_and_back(fields), fields);
}

TEST_P(BinarySafety, HoldsForEveryWayInAndOut) {
  const OwnedFields fields{{all_bytes(), all_bytes()}, {"", "\r\n"}};
  s().ensure_group("g", GroupStart::beginning());
  const auto added = s().add(fields).value();
  const auto batched = s().add_batch(std::vector<OwnedFields>{fields}).at(0).id.value();
  const auto produced = s().produce(all_bytes(), fields);
  const auto events = s().produce_batch(std::vector<Event>{{all_bytes(), fields}}).at(0).id.value();

  const auto check = [&](const EntryBatch& batch) {
    ASSERT_EQ(batch.ids(), (Ids{added, batched, produced, events}));
    EXPECT_EQ(batch[0].to_owned().fields, fields);
    EXPECT_EQ(batch[1].to_owned().fields, fields);
    for (const std::size_t event : {2U, 3U}) {
      EXPECT_EQ(batch[event][0], (Field{"type", all_bytes()}));
      ASSERT_EQ(batch[event].size(), 4U);
      EXPECT_EQ(batch[event][2].second, all_bytes());
      EXPECT_EQ(batch[event][3], (Field{"", "\r\n"}));
    }
  };
  check(s().replay());
  check(s().read(StreamId::min(), kAllNow));
  check(s().consume("g", "alice", kAllNow));
  check(s().consume_own_pending("g", "alice"));
  check(s().autoclaim("g", "bob", {.min_idle = 0ms}).claimed);
  check(s().claim("g", "alice", 0ms, {added, batched, produced, events}).claimed);
  const StreamInfo info = s().info();
  EXPECT_EQ(info.first_entry.value().fields, fields);
  EXPECT_EQ(s().full_info().entries.at(1).fields, fields);
}

TEST_P(BinarySafety, GroupsAndConsumersMayHaveAnyName) {
  const std::string group = all_bytes();
  const std::string consumer = "\r\n" + all_bytes();
  s().ensure_group(group, GroupStart::beginning());
  append(s(), {{1, 0}});
  EXPECT_EQ(s().consume(group, consumer, kAllNow).size(), 1U);
  EXPECT_EQ(s().groups().at(0).name, group);
  EXPECT_EQ(s().consumers(group).at(0).name, consumer);
  EXPECT_EQ(s().pending(group).consumers.at(0).name, consumer);
  EXPECT_EQ(s().pending_entries(group).at(0).consumer, consumer);
  EXPECT_EQ(s().full_info().groups.at(0).consumers.at(0).name, consumer);
  EXPECT_EQ(s().handover_pending(group, consumer, "bob").moved, 1U);
  EXPECT_EQ(s().ack(group, {StreamId{1, 0}}), 1U);
}

TEST_P(BinarySafety, AValueOf64MiBComesBackToTheByte) {
  std::string large(std::size_t{64} << 20, '\0');
  std::uint32_t state = 1;
  for (char& byte : large) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<char>(state >> 24);
  }
  ConnectionOptions patient = options();
  patient.command_timeout = 3 * kGenerous;  // this takes long where memory is watched
  const EventStream stream{ConnectionPool{patient}, "s"};
  stream.ensure_group("g", GroupStart::beginning());
  stream.add({{"before", "1"}, {"large", large}, {"after", "2"}});

  const EntryBatch batch = stream.consume("g", "alice", kAllNow);
  ASSERT_EQ(batch.size(), 1U);
  ASSERT_EQ(batch[0].size(), 3U);
  EXPECT_EQ(batch[0][0], (Field{"before", "1"}));
  EXPECT_TRUE(batch[0].at("large") == large);  // no EXPECT_EQ: it would print 64 MiB
  EXPECT_EQ(batch[0][2], (Field{"after", "2"}));
}

TEST_P(BinarySafety, AnEntryOfAHundredThousandFieldsComesBackInOrder) {
  OwnedFields fields;
  for (int i = 0; i < 100'000; ++i) {
    fields.emplace_back("name" + std::to_string(i % 1000), std::to_string(i));
  }
  EXPECT_TRUE(there_and_back(fields) == fields);
}

MILLRACE_ON_BOTH_PROTOCOLS(BinarySafety);

}  // namespace
}  // namespace millrace::test
