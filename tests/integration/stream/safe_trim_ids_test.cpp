#include "support/stream_test.hpp"

#include <algorithm>
#include <random>
#include <set>

namespace millrace::test {
namespace {

/// The script compares and counts up 64-bit numbers as digits. These are the ids at which that can
/// go wrong: carries, more digits than before, more than a double holds, the last ones.
const std::uint64_t kEdges[] = {0,
                                9,
                                10,
                                99,
                                100,
                                (1ULL << 53) - 1,
                                (1ULL << 53) + 1,
                                9'999'999'999'999'999'999ULL,
                                10'000'000'000'000'000'000ULL,
                                18'446'744'073'709'551'609ULL,
                                18'446'744'073'709'551'614ULL,
                                18'446'744'073'709'551'615ULL};

using Random = std::mt19937;

std::size_t any(Random& random, std::size_t below) {
  return std::uniform_int_distribution<std::size_t>{0, below - 1}(random);
}

Ids some_ids(Random& random, std::size_t count) {
  std::set<StreamId> ids;
  while (ids.size() < count) {
    const StreamId id{kEdges[any(random, std::size(kEdges))],
                      kEdges[any(random, std::size(kEdges))]};
    if (id != StreamId{}) ids.insert(id);
  }
  return {ids.begin(), ids.end()};
}

/// What no group may lose, as the definition has it.
std::optional<StreamId> first_needed(const EventStream& stream) {
  std::optional<StreamId> needed;
  const auto needs = [&needed](StreamId id) { needed = std::min(needed.value_or(id), id); };
  for (const GroupInfo& group : stream.groups()) {
    if (group.last_delivered_id != StreamId::max()) needs(group.last_delivered_id.next());
    for (const PendingEntry& entry : stream.pending_entries(group.name)) needs(entry.id);
    needs(StreamId::max());
  }
  return needed;
}

class SafeTrimIds : public StreamTest {
 protected:
  void one_random_step(Random& random, const Ids& ids) {
    const std::string group = "g" + std::to_string(any(random, 3));
    const StreamId some_id = ids[any(random, ids.size())];
    switch (any(random, 8)) {
      case 0:
        s().erase({some_id});
        break;
      case 1:
        s().set_group_position(group, GroupStart::after(some_id));
        break;
      case 2:
        s().consume(group, "bob", {.count = 1 + any(random, 3), .block = 0ms, .no_ack = true});
        break;
      case 3:
      case 4:
        s().consume(group, "alice", {.count = 1 + any(random, 5), .block = 0ms});
        break;
      default:
        for (const PendingEntry& entry :
             s().pending_entries(group, {.count = 1 + any(random, 5)})) {
          s().ack(group, {entry.id});
        }
    }
  }
};

TEST_P(SafeTrimIds, KeepsEveryEntryThatSomeGroupNeedsAndNoOther) {
  std::size_t removed = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    s().delete_stream();
    const Ids ids = some_ids(random, 20);
    append(s(), ids);
    for (const char* const group : {"g0", "g1", "g2"}) {
      s().ensure_group(group, GroupStart::beginning());
    }
    for (int step = 0; step < 40; ++step) {
      one_random_step(random, ids);
      const auto needed = first_needed(s());
      const Ids before = s().replay().ids();
      Ids expected;
      std::copy_if(before.begin(), before.end(), std::back_inserter(expected),
                   [&](StreamId id) { return id >= *needed; });

      removed += s().trim_safely();

      ASSERT_EQ(s().replay().ids(), expected) << "needed " << *needed << " after step " << step;
    }
  }
  EXPECT_GT(removed, 100U);  // the steps did lead somewhere
}

TEST_P(SafeTrimIds, StopAtTheLastPossibleOne) {
  append(s(), {{5, 0}, StreamId::max()});
  s().ensure_group("g", GroupStart::beginning());
  s().consume("g", "alice", {.count = 10, .block = 0ms, .no_ack = true});
  EXPECT_EQ(s().trim_safely(), 1U);  // no threshold is above the last possible id
  EXPECT_EQ(s().replay().ids(), (Ids{StreamId::max()}));
}

MILLRACE_ON_BOTH_PROTOCOLS(SafeTrimIds);

}  // namespace
}  // namespace millrace::test
