#include "support/proxy.hpp"
#include "support/stream_test.hpp"

namespace millrace::test {
namespace {

class Autoclaim : public StreamTest {
 protected:
  /// Entries 1-0 to `count`-0, all pending for alice.
  void given_pending(std::uint64_t count) {
    s().ensure_group("g", GroupStart::beginning());
    for (std::uint64_t ms = 1; ms <= count; ++ms) append(s(), {{ms, 0}});
    s().consume("g", "alice", {.count = count, .block = 0ms});
  }

  void make_idle(const Ids& ids, std::chrono::milliseconds idle) {
    s().claim_ids("g", "alice", 0ms, ids, {.idle = idle});
  }
};

TEST_P(Autoclaim, TakesWhatWasIdleForLongEnough) {
  given_three_pending();
  make_idle({{2, 0}}, 500s);
  const AutoclaimResult result = s().autoclaim("g", "bob", {.min_idle = 400s});
  EXPECT_EQ(text(result.claimed), "2-0[f=v]");
  EXPECT_TRUE(result.complete());
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 bob 2, 3-0 alice 1");
}

TEST_P(Autoclaim, WaitsForTheStreamsMinIdleUnlessToldOtherwise) {
  given_three_pending();
  make_idle({{1, 0}, {2, 0}, {3, 0}}, 500s);
  EXPECT_TRUE(stream("s", {.claim_min_idle = 600s}).autoclaim_page("g", "bob").claimed.empty());
  EXPECT_TRUE(stream("s", {.claim_min_idle = 600s}).autoclaim("g", "bob").claimed.empty());
  EXPECT_EQ(stream("s", {.claim_min_idle = 400s}).autoclaim("g", "bob").claimed.size(), 3U);
  make_idle({{1, 0}, {2, 0}, {3, 0}}, 500s);
  EXPECT_EQ(stream("s", {.claim_min_idle = 400s}).autoclaim_page("g", "bob").claimed.size(), 3U);
}

TEST_P(Autoclaim, TakesAConsumersOwnIdleEntriesToo) {
  given_three_pending();
  EXPECT_EQ(s().autoclaim("g", "alice", {.min_idle = 0ms}).claimed.size(), 3U);
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 2, 2-0 alice 2, 3-0 alice 2");
}

TEST_P(Autoclaim, GoesPageByPageFromACursor) {
  given_pending(5);
  const AutoclaimPage first = s().autoclaim_page("g", "bob", {.min_idle = 0ms, .count = 2});
  EXPECT_EQ(first.claimed.ids(), (Ids{{1, 0}, {2, 0}}));
  EXPECT_EQ(first.next_cursor, (StreamId{3, 0}));
  const AutoclaimPage second =
      s().autoclaim_page("g", "bob", {.min_idle = 0ms, .start = first.next_cursor, .count = 100});
  EXPECT_EQ(second.claimed.ids(), (Ids{{3, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(second.next_cursor, StreamId{});
}

TEST_P(Autoclaim, PagesWithoutEntriesAreNoEnd) {
  given_pending(35);
  make_idle({{35, 0}}, 500s);
  const AutoclaimPage page = s().autoclaim_page("g", "bob", {.min_idle = 400s, .count = 1});
  EXPECT_TRUE(page.claimed.empty());
  EXPECT_EQ(page.next_cursor, (StreamId{11, 0}));  // ten entries looked at for each one asked for
  EXPECT_EQ(s().autoclaim("g", "bob", {.min_idle = 400s, .count = 1}).claimed.ids(),
            (Ids{{35, 0}}));
}

TEST_P(Autoclaim, JoinsAllPages) {
  given_pending(25);
  s().erase({StreamId{3, 0}, StreamId{24, 0}});
  const AutoclaimResult result = s().autoclaim("g", "bob", {.min_idle = 0ms, .count = 4});
  EXPECT_TRUE(result.complete());
  EXPECT_FALSE(result.error.has_value());
  EXPECT_EQ(result.claimed.size(), 23U);
  EXPECT_EQ(result.claimed[0].at("f"), "v");
  EXPECT_EQ(result.claimed[22].at("f"), "v");
  EXPECT_EQ(result.claimed.back().id(), (StreamId{25, 0}));
  EXPECT_EQ(result.deleted_ids, (Ids{{3, 0}, {24, 0}}));
  EXPECT_EQ(s().pending("g").count, 23U);
}

TEST_P(Autoclaim, StopsAfterSoManyPagesAndSaysWhereToGoOn) {
  given_pending(10);
  const AutoclaimResult first =
      s().autoclaim("g", "bob", {.min_idle = 0ms, .count = 2, .max_pages = 2});
  EXPECT_EQ(first.claimed.size(), 4U);
  EXPECT_FALSE(first.complete());
  EXPECT_FALSE(first.error.has_value());
  const AutoclaimResult rest =
      s().autoclaim("g", "bob", {.min_idle = 0ms, .start = first.next_cursor, .count = 2});
  EXPECT_EQ(rest.claimed.size(), 6U);
  EXPECT_TRUE(rest.complete());
}

TEST_P(Autoclaim, KeepsWhatEarlierPagesGaveWhenALaterOneFails) {
  given_pending(6);
  s().erase({StreamId{1, 0}});
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream stream{ConnectionPool{through}, "s"};
  proxy.lose_reply_to("XAUTOCLAIM", 2);

  const AutoclaimResult result = stream.autoclaim("g", "bob", {.min_idle = 0ms, .count = 3});

  ASSERT_TRUE(result.error.has_value());
  EXPECT_EQ(result.error->outcome(), Outcome::kUnknown);
  EXPECT_THROW(result.error->raise(), IoError);
  EXPECT_EQ(text(result.claimed), "2-0[f=v] 3-0[f=v]");
  EXPECT_EQ(result.deleted_ids, (Ids{{1, 0}}));
  EXPECT_EQ(result.next_cursor, (StreamId{4, 0}));
  EXPECT_FALSE(result.complete());
}

TEST_P(Autoclaim, ThrowsWhatTheFirstPageMeets) {
  append(s(), {{1, 0}});
  EXPECT_THROW(s().autoclaim("nogroup", "bob"), NoGroupError);
}

TEST_P(Autoclaim, RefusesOptionsOutOfRangeAndSaysWhich) {
  given_three_pending();
  EXPECT_THROW(s().autoclaim("g", "bob", {.count = 0}), InvalidArgument);
  EXPECT_THROW(s().autoclaim_page("g", "bob", {.count = 0}), InvalidArgument);
  const auto pages = thrown<InvalidArgument>(
      [&] { s().autoclaim("g", "bob", {.min_idle = 0ms, .max_pages = 0}); });
  EXPECT_THAT(pages.what(), ::testing::HasSubstr("max_pages"));
  const auto idle = thrown<InvalidArgument>([&] { s().autoclaim("g", "bob", {.min_idle = -1ms}); });
  EXPECT_THAT(idle.what(), ::testing::HasSubstr("min_idle"));
  EXPECT_EQ(pending_text(s(), "g"), "1-0 alice 1, 2-0 alice 1, 3-0 alice 1");
}

MILLRACE_ON_BOTH_PROTOCOLS(Autoclaim);

}  // namespace
}  // namespace millrace::test
