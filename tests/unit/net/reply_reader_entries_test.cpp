#include "fuzz/read_both_ways.hpp"
#include "net/reply_reader.hpp"
#include "protocol/decode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace millrace::detail {
namespace {

using test::Cut;

std::string bulk_of(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string{text} + "\r\n";
}

std::string entry_of(std::string_view id, std::initializer_list<std::string_view> words) {
  auto bytes = "*2\r\n" + bulk_of(id) + "*" + std::to_string(words.size()) + "\r\n";
  for (const auto word : words) bytes += bulk_of(word);
  return bytes;
}

std::string array_of(const std::vector<std::string>& elements) {
  auto bytes = "*" + std::to_string(elements.size()) + "\r\n";
  for (const auto& element : elements) bytes += element;
  return bytes;
}

/// As a server answers with entries, in all the ways there are.
struct Sample {
  ReplyShape shape;
  std::string bytes;
};

const std::vector<Sample>& well_formed() {
  static const std::vector<Sample> kSamples = [] {
    const auto some = array_of(
        {entry_of("1700000000000-0", {"name", "a\r\n\0b", "", ""}),
         entry_of("1700000000000-12", {}), "*2\r\n" + bulk_of("18446744073709551615-3") + "*-1\r\n",
         "*2\r\n" + bulk_of("5-1") + "$-1\r\n", entry_of("6-1", {"n", std::string(120, 'v')})});
    const auto big = array_of({entry_of("1-1", {"n", std::string(9'000, 'b'), "m", "x"}),
                               entry_of("1-2", {"n", std::string(150'000, 'c')}),
                               entry_of("1-3", {"n", "after it"})});
    const auto uneven = array_of({entry_of("1-1", {"a", "b"}), entry_of("1-2", {"c", "d"}),
                                  entry_of("1-3", {"e", "f", "g", "h", "i", "j", "k", "l"}),
                                  entry_of("1-4", {"m", "n"})});
    const auto deleted = array_of({bulk_of("3-1"), bulk_of("4-0")});
    return std::vector<Sample>{
        {ReplyShape::kEntries, some},
        {ReplyShape::kEntries, big},
        {ReplyShape::kEntries, uneven},
        {ReplyShape::kEntries, array_of({})},
        {ReplyShape::kRead, array_of({array_of({bulk_of("key"), some})})},
        {ReplyShape::kRead, array_of({array_of({bulk_of("1-1"), array_of({})})})},
        {ReplyShape::kRead, array_of({array_of({bulk_of(""), big})})},
        {ReplyShape::kAutoclaim, array_of({bulk_of("7-1"), some, deleted})},
        {ReplyShape::kAutoclaim, array_of({bulk_of("0-0"), array_of({}), array_of({})})},
        {ReplyShape::kAutoclaim, array_of({bulk_of("0-0"), big, deleted})},
    };
  }();
  return kSamples;
}

/// What can come in place of these, and what only a broken peer would send.
std::vector<Sample> others() {
  std::vector<Sample> samples;
  const auto good = entry_of("1-1", {"n", "v"});
  const std::vector<std::string> lists{
      "*-1\r\n",
      "$-1\r\n",
      "-ERR no such thing\r\n",
      "+OK\r\n",
      ":5\r\n",
      ":-5\r\n",
      ":007\r\n",
      "$3\r\nabc\r\n",
      "$03\r\nabc\r\n",
      "$3\r\nabcXX",
      "*0\r\n",
      "*00\r\n",
      "*+1\r\n" + good,
      "*99999999999999\r\n",
      "$9999999999\r\n",
      "*x\r\n",
      "*1\n" + good,
      "nonsense\r\n",
      array_of({good, "*-1\r\n"}),
      array_of({good, "$-1\r\n"}),
      array_of({good, ":1\r\n"}),
      array_of({good, array_of({bulk_of("2-1"), array_of({}), ":9\r\n", ":1\r\n"})}),
      array_of({good, array_of({bulk_of("2-1")})}),
      array_of({good, array_of({"+2-1\r\n", array_of({})})}),
      array_of({good, array_of({bulk_of("no id"), array_of({})})}),
      array_of({good, array_of({bulk_of("99999999999999999999-1"), array_of({})})}),
      array_of({good, entry_of("2-1", {"odd"})}),
      array_of({good, array_of({bulk_of("2-1"), array_of({bulk_of("n"), "$-1\r\n"})})}),
      array_of({good, array_of({bulk_of("2-1"), array_of({bulk_of("n"), ":7\r\n"})})}),
      array_of({good, array_of({bulk_of("2-1"), "_\r\n"})}),
      array_of({good, "%1\r\n" + bulk_of("n") + bulk_of("v")})};
  for (const auto& list : lists) {
    samples.push_back({ReplyShape::kAny, list});
    samples.push_back({ReplyShape::kEntries, list});
    samples.push_back({ReplyShape::kRead, list});
    samples.push_back({ReplyShape::kRead, array_of({array_of({bulk_of("key"), list})})});
    samples.push_back({ReplyShape::kRead, "%1\r\n" + bulk_of("key") + list});
    samples.push_back({ReplyShape::kAutoclaim, list});
    samples.push_back({ReplyShape::kAutoclaim, array_of({bulk_of("1-0"), list})});
    samples.push_back({ReplyShape::kAutoclaim, array_of({bulk_of("1-0"), list, array_of({})})});
    samples.push_back({ReplyShape::kAutoclaim, array_of({bulk_of("1-0"), array_of({good}), list})});
    samples.push_back({ReplyShape::kEntries, ">2\r\n+a\r\n+b\r\n" + list});
    // What comes behind a reply is the next one, whichever of the two ways the first one took.
    samples.push_back({ReplyShape::kEntries, list + array_of({good}) + ":1\r\n" + list});
  }
  return samples;
}

Cut whole() {
  return [](std::size_t left) { return left; };
}
Cut each_byte() {
  return [](std::size_t) { return std::size_t{1}; };
}
Cut once_at(std::size_t where) {
  return [where, is_first = true](std::size_t left) mutable {
    return std::exchange(is_first, false) ? where : left;
  };
}
Cut at_random(std::uint32_t seed) {
  return [random = std::minstd_rand{seed}](std::size_t left) mutable -> std::size_t {
    const std::size_t most = std::size_t{1} << (random() % 18);
    return 1 + random() % std::min(left, most);
  };
}

void expect_the_same(ReplyShape shape, const std::string& bytes, const Cut& cut) {
  const auto ours = test::read_by_us(shape, bytes, cut);
  const auto theirs = test::read_by_hiredis(shape, bytes, cut);
  if (ours == theirs) return;  // the usual case, and what there is to print may be long
  ADD_FAILURE() << "shape " << static_cast<int>(shape) << ", bytes "
                << ::testing::PrintToString(bytes.substr(0, 500))
                << "\nours:    " << ours.substr(0, 500) << "\nhiredis: " << theirs.substr(0, 500);
}

TEST(ReplyReaderEntries, ReadsWhatServersAnswerWithoutATree) {
  for (const Sample& sample : well_formed()) {
    for (const Cut& cut : {whole(), at_random(1), at_random(2)}) {
      ReplyReader reader;
      std::optional<Reply> reply;
      std::vector<std::string> pieces;
      for (std::string_view rest{sample.bytes}; !rest.empty();) {
        EXPECT_FALSE(reply) << "before its end";
        pieces.emplace_back(rest.substr(0, cut(rest.size())));
        rest.remove_prefix(pieces.back().size());
        reader.feed(pieces.back());
        reply = reader.next(sample.shape);
        EXPECT_EQ(reader.is_drained(), reply.has_value());
      }
      ASSERT_TRUE(reply);
      const ReplyView root = reply->root();
      const ReplyView list = sample.shape == ReplyShape::kAutoclaim ? root[1] : root;
      EXPECT_EQ(list.kind(), ReplyKind::kEntries) << sample.bytes.substr(0, 100);
    }
  }
}

TEST(ReplyReaderEntries, AreCountedWithoutBeingTaken) {
  for (const Sample& sample : well_formed()) {
    ReplyReader with_a_tree;
    ReplyReader without;
    with_a_tree.feed(sample.bytes);
    without.feed(sample.bytes);
    const auto tree = with_a_tree.next();
    const auto list = without.next(sample.shape);
    ASSERT_TRUE(tree && list);
    const bool is_claimed = sample.shape == ReplyShape::kAutoclaim;
    const ReplyView entries = sample.shape == ReplyShape::kRead ? tree->root()[0][1]
                              : is_claimed                      ? tree->root()[1]
                                                                : tree->root();
    EXPECT_EQ((is_claimed ? list->root()[1] : list->root()).size(), entries.size());
  }
}

TEST(ReplyReaderEntries, AreThoseThatHiredisReadsWhereverTheyAreCut) {
  for (const Sample& sample : well_formed()) {
    expect_the_same(sample.shape, sample.bytes, whole());
    for (std::uint32_t seed = 0; seed < 6; ++seed) {
      expect_the_same(sample.shape, sample.bytes + ":100\r\n" + sample.bytes, at_random(seed));
    }
    if (sample.bytes.size() > 10'000) continue;
    expect_the_same(sample.shape, sample.bytes, each_byte());
    for (std::size_t at = 1; at < sample.bytes.size(); ++at) {
      expect_the_same(sample.shape, sample.bytes, once_at(at));
    }
  }
}

TEST(ReplyReaderEntries, LeaveEverythingElseToHiredisFromItsFirstByteOn) {
  for (const Sample& sample : others()) {
    expect_the_same(sample.shape, sample.bytes, whole());
    expect_the_same(sample.shape, sample.bytes, each_byte());
    for (std::size_t at = 1; at < sample.bytes.size(); at += 1 + sample.bytes.size() / 16) {
      expect_the_same(sample.shape, sample.bytes, once_at(at));
    }
  }
}

/// One small change of the kind that tells two parsers apart.
void mutate(std::string& bytes, std::minstd_rand& random) {
  constexpr std::string_view kLetters = "*$:+-_%>~#,0129\r\n(x";
  const std::size_t at = random() % bytes.size();
  const std::size_t size = random() % std::min<std::size_t>(bytes.size() - at, 40) + 1;
  const char letter = kLetters[random() % kLetters.size()];
  switch (random() % 6) {
    case 0:
      bytes[at] = letter;
      break;
    case 1:
      bytes.insert(at, 1, letter);
      break;
    case 2:
      bytes.erase(at, size);
      break;
    case 3:
      bytes.insert(at, bytes.substr(at, size));
      break;
    case 4:
      bytes[at] = static_cast<char>(random() % 256);
      break;
    default:
      bytes.insert(at, "-1\r\n");
  }
  if (bytes.empty()) bytes = "*";
}

TEST(ReplyReaderEntries, AreThoseThatHiredisReadsWhateverBytesComeAndWhereverTheyAreCut) {
  std::vector<Sample> seeds = others();
  for (const Sample& sample : well_formed()) {
    if (sample.bytes.size() < 10'000) seeds.insert(seeds.end(), 30, sample);
  }
  std::minstd_rand random{20'261};
  for (int round = 0; round < 50'000 && !::testing::Test::HasFailure(); ++round) {
    Sample sample = seeds[random() % seeds.size()];
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      mutate(sample.bytes, random);
    }
    if (!test::is_affordable(sample.bytes)) continue;
    expect_the_same(sample.shape, sample.bytes,
                    random() % 2 == 0 ? whole() : at_random(static_cast<std::uint32_t>(random())));
  }
}

}  // namespace
}  // namespace millrace::detail
