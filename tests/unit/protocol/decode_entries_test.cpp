#include "protocol/decode.hpp"

#include <millrace/error.hpp>

#include "resp.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::detail {
namespace {

std::vector<OwnedEntry> owned(const EntryBatch& batch) {
  std::vector<OwnedEntry> entries;
  for (const Entry& entry : batch) entries.push_back(entry.to_owned());
  return entries;
}

std::vector<OwnedEntry> read(std::string_view wire) { return owned(decode::read(resp(wire))); }

std::vector<OwnedEntry> entries(std::string_view wire) {
  return owned(decode::entries(resp(wire)));
}

/// What the ProtocolError says that `decode` throws.
template <typename Decode>
std::string surprise_of(Decode decode) {
  try {
    decode();
    return "nothing is thrown";
  } catch (const ProtocolError& error) {
    return error.what();
  }
}

const OwnedEntry kOne{.id = {1, 0}, .fields = {{"f", "v"}}};
const OwnedEntry kTwoDeleted{.id = {2, 0}, .deleted = true};
const OwnedEntry kThree{.id = {3, 0}, .fields = {{"f", "v"}}};

TEST(DecodeRead, TakesAHistoryWithADeletedEntryInBothProtocols) {
  const std::vector<OwnedEntry> expected{kOne, kTwoDeleted, kThree};
  EXPECT_EQ(
      read("*1\r\n*2\r\n$1\r\ns\r\n*3\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*2\r\n"
           "$3\r\n2-0\r\n*-1\r\n*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"),
      expected);
  EXPECT_EQ(
      read("%1\r\n$1\r\ns\r\n*3\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*2\r\n$3\r\n"
           "2-0\r\n_\r\n*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"),
      expected);
}

TEST(DecodeRead, HasThreeShapesOfNothing) {
  EXPECT_TRUE(read("*-1\r\n").empty());
  EXPECT_TRUE(read("_\r\n").empty());
  EXPECT_TRUE(read("*1\r\n*2\r\n$1\r\ns\r\n*0\r\n").empty());
  EXPECT_TRUE(read("%1\r\n$1\r\ns\r\n*0\r\n").empty());
  EXPECT_TRUE(read("*0\r\n").empty());
  EXPECT_TRUE(read("%0\r\n").empty());
}

TEST(DecodeRead, TakesTheFourElementsOfAClaimingRead) {
  const std::vector<OwnedEntry> expected{kOne, kThree};
  const std::string list =
      "*2\r\n*4\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n:120\r\n:1\r\n"
      "*4\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n:0\r\n:0\r\n";
  EXPECT_EQ(read("*1\r\n*2\r\n$1\r\ns\r\n" + list), expected);
  EXPECT_EQ(read("%1\r\n$1\r\ns\r\n" + list), expected);
}

TEST(DecodeRead, KeepsBothListsOfAKeyThatWasNamedTwice) {
  const std::string one = "*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
  const std::string three = "*1\r\n*2\r\n$3\r\n3-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n";
  const std::vector<OwnedEntry> expected{kThree, kOne};
  EXPECT_EQ(read("%2\r\n$1\r\ns\r\n" + three + "$1\r\ns\r\n" + one), expected);
  EXPECT_EQ(read("*2\r\n*2\r\n$1\r\ns\r\n" + three + "*2\r\n$1\r\ns\r\n" + one), expected);
}

TEST(DecodeEntries, KeepsOrderRepeatedNamesAndEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  const auto batch = entries(
      "*1\r\n*2\r\n$3\r\n1-0\r\n*8\r\n$1\r\nf\r\n$1\r\n1\r\n$1\r\nf\r\n$1\r\n2\r\n"
      "$0\r\n\r\n$0\r\n\r\n$256\r\n" +
      all + "\r\n$256\r\n" + all + "\r\n");
  ASSERT_EQ(batch.size(), 1U);
  EXPECT_EQ(batch[0].fields, (OwnedFields{{"f", "1"}, {"f", "2"}, {"", ""}, {all, all}}));
}

TEST(DecodeEntries, TakesNullForAnEmptyRange) {
  EXPECT_TRUE(entries("*-1\r\n").empty());
  EXPECT_TRUE(entries("_\r\n").empty());
  EXPECT_TRUE(entries("*0\r\n").empty());
}

TEST(DecodeEntries, OwnsItsBytesWithoutTheReply) {
  EntryBatch batch;
  {
    Reply reply = resp("*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n");
    batch = decode::entries(std::move(reply));
  }
  EXPECT_EQ(owned(batch), std::vector<OwnedEntry>{kOne});
}

TEST(DecodeEntries, SkipsTheNullsOfRedis62) {
  EXPECT_EQ(entries("*3\r\n$-1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n_\r\n"),
            std::vector<OwnedEntry>{kOne});
  EXPECT_TRUE(entries("*1\r\n*-1\r\n").empty());
}

TEST(DecodeAutoclaim, HasAllThreeSlots) {
  const AutoclaimPage page = decode::autoclaim(resp(
      "*3\r\n$3\r\n0-0\r\n*2\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n*2\r\n$3\r\n3-0\r\n"
      "*2\r\n$1\r\nf\r\n$1\r\nv\r\n*1\r\n$3\r\n2-0\r\n"));
  EXPECT_EQ(page.next_cursor, StreamId{});
  EXPECT_EQ(owned(page.claimed), (std::vector<OwnedEntry>{kOne, kThree}));
  EXPECT_EQ(page.deleted_ids, std::vector<StreamId>({{2, 0}}));
}

TEST(DecodeAutoclaim, KeepsTheCursorOfAnEmptyPage) {
  const AutoclaimPage page =
      decode::autoclaim(resp("*3\r\n$3\r\n2-0\r\n*0\r\n*1\r\n$3\r\n1-0\r\n"));
  EXPECT_EQ(page.next_cursor, (StreamId{2, 0}));
  EXPECT_TRUE(page.claimed.empty());
  EXPECT_EQ(page.deleted_ids, std::vector<StreamId>({{1, 0}}));
}

TEST(DecodeAutoclaim, TakesTheTwoSlotsOfRedis62WithTheirNulls) {
  const AutoclaimPage page = decode::autoclaim(
      resp("*2\r\n$3\r\n0-0\r\n*2\r\n$-1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n"));
  EXPECT_EQ(owned(page.claimed), std::vector<OwnedEntry>{kOne});
  EXPECT_TRUE(page.deleted_ids.empty());
}

TEST(DecodeAdded, IsAnIdOrNoStream) {
  EXPECT_EQ(decode::added(resp("$3\r\n5-1\r\n").root()), (StreamId{5, 1}));
  EXPECT_EQ(decode::added(resp("$-1\r\n").root()), std::nullopt);
  EXPECT_EQ(decode::added(resp("_\r\n").root()), std::nullopt);
  EXPECT_EQ(surprise_of([] { decode::added(resp("+OK\r\n").root()); }),
            "the reply to XADD is a status, not a stream id");
}

TEST(DecodeCount, IsANumberThatIsNotNegative) {
  EXPECT_EQ(decode::count(resp(":7\r\n").root()), 7U);
  EXPECT_EQ(decode::count(resp("$1\r\n7\r\n").root()), 7U);
  EXPECT_EQ(surprise_of([] { decode::count(resp(":-1\r\n").root()); }),
            "a count is the integer -1, not a number of 0 or more");
  for (const char* const wire : {"_\r\n", "$2\r\n7x\r\n", "$0\r\n\r\n", "$2\r\n-1\r\n"}) {
    EXPECT_THROW(decode::count(resp(wire).root()), ProtocolError) << wire;
  }
}

TEST(DecodeEntries, NamesTheSurprise) {
  const auto said = [](std::string_view wire) {
    return surprise_of([&] { decode::entries(resp(wire)); });
  };
  EXPECT_EQ(said(":1\r\n"), "a list of entries is the integer 1, not a list");
  EXPECT_EQ(said("*1\r\n:1\r\n"), "an entry is the integer 1, not an id and fields");
  EXPECT_EQ(said("*1\r\n*1\r\n$3\r\n1-0\r\n"), "an entry is an array of 1, not an id and fields");
  EXPECT_EQ(said("*1\r\n*0\r\n"), "an entry is an array of 0, not an id and fields");
  EXPECT_EQ(said("*1\r\n*2\r\n$3\r\nx-0\r\n*0\r\n"),
            "an entry's id is a string of 3 bytes, not a stream id");
  EXPECT_EQ(said("*1\r\n*2\r\n$3\r\n1-0\r\n:5\r\n"),
            "an entry's fields is the integer 5, not a list of names and values");
  EXPECT_EQ(said("*1\r\n*2\r\n$3\r\n1-0\r\n*1\r\n$1\r\nf\r\n"),
            "an entry's fields is an array of 1, not a list of names and values");
  EXPECT_EQ(said("*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nf\r\n:5\r\n"),
            "a field's value is the integer 5, not a string");
  EXPECT_EQ(said("*1\r\n-ERR odd\r\n"), "an entry is an error, not an id and fields");
}

TEST(DecodeEntries, NeverShowsAPayloadInTheSurprise) {
  const std::string said =
      surprise_of([] { decode::entries(resp("*1\r\n*2\r\n$6\r\nsecret\r\n*0\r\n")); });
  EXPECT_EQ(said.find("secret"), std::string::npos) << said;
}

TEST(DecodeRead, NamesTheSurprise) {
  const auto said = [](std::string_view wire) {
    return surprise_of([&] { decode::read(resp(wire)); });
  };
  EXPECT_EQ(said("+OK\r\n"), "the reply to a read is a status, not a list of streams");
  EXPECT_EQ(said("*1\r\n*1\r\n$1\r\ns\r\n"),
            "a stream of a read is an array of 1, not a key and entries");
  EXPECT_EQ(said("*1\r\n*2\r\n:1\r\n*0\r\n"), "a stream's key is the integer 1, not a string");
  EXPECT_EQ(said("%1\r\n$1\r\ns\r\n:1\r\n"), "a list of entries is the integer 1, not a list");
}

TEST(DecodeAutoclaim, NamesTheSurprise) {
  const auto said = [](std::string_view wire) {
    return surprise_of([&] { decode::autoclaim(resp(wire)); });
  };
  EXPECT_EQ(said("*1\r\n$3\r\n0-0\r\n"),
            "the reply to XAUTOCLAIM is an array of 1, not a cursor, entries and deleted ids");
  EXPECT_EQ(said("*2\r\n:0\r\n*0\r\n"),
            "the cursor of XAUTOCLAIM is the integer 0, not a stream id");
  EXPECT_EQ(said("*3\r\n$3\r\n0-0\r\n*0\r\n*1\r\n:5\r\n"),
            "an id is the integer 5, not a stream id");
  EXPECT_EQ(said("_\r\n"),
            "the reply to XAUTOCLAIM is null, not a cursor, entries and deleted ids");
}

TEST(DecodeEntries, MeasuresWhatCameAndNotWhatWasAnnounced) {
  Reply reply;
  const auto root = reply.add_aggregate(ReplyKind::kArray, std::size_t{1} << 60, 0);
  const auto entry = reply.add_aggregate(ReplyKind::kArray, 2, root);
  reply.add_text(ReplyKind::kString, "1-0", entry);
  const auto fields = reply.add_aggregate(ReplyKind::kArray, std::size_t{1} << 60, entry);
  reply.add_text(ReplyKind::kString, "f", fields);
  reply.add_text(ReplyKind::kString, "v", fields);

  EXPECT_EQ(owned(decode::entries(std::move(reply))), std::vector<OwnedEntry>{kOne});
}

}  // namespace
}  // namespace millrace::detail
