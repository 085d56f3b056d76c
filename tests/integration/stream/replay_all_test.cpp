#include "support/stream_test.hpp"

#include <ranges>
#include <type_traits>

namespace millrace::test {
namespace {

static_assert(std::ranges::input_range<ReplayRange>);
static_assert(!std::is_copy_constructible_v<ReplayRange>);
static_assert(std::is_nothrow_move_constructible_v<ReplayRange>);
static_assert(std::is_same_v<std::ranges::range_reference_t<ReplayRange>, const Entry&>);

class ReplayAll : public StreamTest {
 protected:
  void given_entries(std::uint64_t count) {
    for (std::uint64_t ms = 1; ms <= count; ++ms) append(s(), {{ms, 0}});
  }

  static Ids ids_of(ReplayRange range) {
    Ids ids;
    for (const Entry& entry : range) ids.push_back(entry.id());
    return ids;
  }

  /// How often the server was asked for a range.
  std::string range_calls() {
    const std::string stats = info_field(raw(), "commandstats", "cmdstat_xrange");
    return stats.substr(0, stats.find(','));
  }
};

TEST_P(ReplayAll, GivesEveryEntryInOrder) {
  given_entries(25);
  Ids expected;
  for (std::uint64_t ms = 1; ms <= 25; ++ms) expected.push_back({ms, 0});
  EXPECT_EQ(ids_of(s().replay_all()), expected);
  EXPECT_EQ(ids_of(s().replay_all({}, {}, 1)), expected);
  EXPECT_EQ(ids_of(s().replay_all({}, {}, 10)), expected);
  EXPECT_EQ(ids_of(s().replay_all({}, {}, 25)), expected);
}

TEST_P(ReplayAll, AsksForAPageARoundTrip) {
  given_entries(25);
  raw()("CONFIG", "RESETSTAT");
  EXPECT_EQ(ids_of(s().replay_all({}, {}, 10)).size(), 25U);
  EXPECT_EQ(range_calls(), "calls=3");
}

TEST_P(ReplayAll, AsksForNothingBeforeItIsIterated) {
  ConnectionOptions nobody = options();
  nobody.unix_socket = "/nonexistent/socket";
  ReplayRange range = EventStream{ConnectionPool{nobody}, "s"}.replay_all();
  EXPECT_THROW(range.begin(), ConnectError);
}

TEST_P(ReplayAll, HandsOutEntriesWithTheirFields) {
  s().add({{"a", "1"}, {"b", "2"}}, {.id = AddId::exactly({1, 0})});
  for (const Entry& entry : s().replay_all()) EXPECT_EQ(text(entry), "1-0[a=1 b=2]");
}

TEST_P(ReplayAll, KeepsToItsEnds) {
  given_entries(5);
  EXPECT_EQ(ids_of(s().replay_all(StreamId{2, 0}, StreamId{4, 0}, 1)),
            (Ids{{2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(ids_of(s().replay_all(RangeStart::after({2, 0}), RangeEnd::before({5, 0}), 1)),
            (Ids{{3, 0}, {4, 0}}));
}

TEST_P(ReplayAll, OfAMissingStreamIsEmpty) { EXPECT_TRUE(ids_of(s().replay_all()).empty()); }

TEST_P(ReplayAll, GoesOnAfterEntriesThatWereDeletedOnTheWay) {
  given_entries(6);
  Ids seen;
  for (const Entry& entry : s().replay_all({}, {}, 2)) {
    seen.push_back(entry.id());
    if (entry.id() == StreamId{2, 0}) s().erase({StreamId{2, 0}, StreamId{3, 0}});
  }
  EXPECT_EQ(seen, (Ids{{1, 0}, {2, 0}, {4, 0}, {5, 0}, {6, 0}}));
}

TEST_P(ReplayAll, SeesWhatIsAppendedOnTheWay) {
  given_entries(2);
  Ids seen;
  for (const Entry& entry : s().replay_all({}, {}, 1)) {
    seen.push_back(entry.id());
    if (entry.id() == StreamId{2, 0}) append(s(), {{3, 0}});
  }
  EXPECT_EQ(seen, (Ids{{1, 0}, {2, 0}, {3, 0}}));
}

TEST_P(ReplayAll, ThrowsWhatALaterPageMeets) {
  given_entries(4);
  ReplayRange range = s().replay_all({}, {}, 2);
  auto at = range.begin();
  ++at;
  raw()("SET", "s", "no stream");
  EXPECT_THROW(++at, WrongTypeError);
}

TEST_P(ReplayAll, CanBeMovedBeforeItIsIterated) {
  given_entries(3);
  ReplayRange range = s().replay_all({}, {}, 2);
  EXPECT_EQ(ids_of(std::move(range)).size(), 3U);
}

TEST_P(ReplayAll, RefusesAPageOfZero) { EXPECT_THROW(s().replay_all({}, {}, 0), InvalidArgument); }

MILLRACE_ON_BOTH_PROTOCOLS(ReplayAll);

}  // namespace
}  // namespace millrace::test
