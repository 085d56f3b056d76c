#include "protocol/commands.hpp"

#include "resp.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using commands::AddTerms;
using commands::Payload;
using commands::TrimTerms;
using std::chrono::system_clock;

template <typename Write>
std::string written(Write write) {
  RequestBuffer request;
  write(request);
  EXPECT_EQ(request.commands(), 1U);  // as many words as were announced
  return std::string{request.bytes()};
}

std::string xadd(const AddTerms& terms, const Fields& fields, std::span<const Field> first = {}) {
  return written([&](RequestBuffer& r) { commands::xadd(r, "k", terms, first, fields); });
}

TEST(Xadd, AppendsWithAnAutomaticId) {
  EXPECT_EQ(xadd({}, {{"f", "v"}, {"f", ""}}), wire({"XADD", "k", "*", "f", "v", "f", ""}));
}

TEST(Xadd, PutsTheEnvelopeBeforeThePayload) {
  const Field first[] = {{"type", "t"}, {"ts_ms", "5"}};
  EXPECT_EQ(xadd({}, {{"f", "v"}}, first),
            wire({"XADD", "k", "*", "type", "t", "ts_ms", "5", "f", "v"}));
}

TEST(Xadd, WritesEveryOptionBeforeTheId) {
  EXPECT_EQ(xadd({.id = AddId::exactly({5, 1}),
                  .trim = TrimTerms{.threshold = TrimTerms::MaxLen{100}, .limit = 7},
                  .create_stream = false},
                 {{"f", "v"}}),
            wire({"XADD", "k", "NOMKSTREAM", "MAXLEN", "~", "100", "LIMIT", "7", "5-1", "f", "v"}));
  EXPECT_EQ(
      xadd({.trim = TrimTerms{.threshold = TrimTerms::MinId{{9, 1}}, .exact = true}}, {{"f", "v"}}),
      wire({"XADD", "k", "MINID", "=", "9-1", "*", "f", "v"}));
}

TEST(Xadd, NamesAMillisecondForTheServerToCountIn) {
  EXPECT_EQ(xadd({.id = AddId::at_ms(1526919030474)}, {{"f", "v"}}),
            wire({"XADD", "k", "1526919030474-*", "f", "v"}));
  EXPECT_EQ(xadd({.id = AddId::at_ms(StreamId::max().ms)}, {{"f", "v"}}),
            wire({"XADD", "k", "18446744073709551615-*", "f", "v"}));
}

TEST(Xadd, OfASeriesIsAsIfItStoodAlone) {
  const AddTerms terms{.id = AddId::at_ms(7), .create_stream = false};
  const Field first[] = {{"type", "t"}};
  const OwnedFields big{{"f", std::string(5'000, 'v')}};
  RequestBuffer alone;
  RequestBuffer request;
  commands::XaddSeries series{request, "k", terms};
  const auto add = [&](std::span<const Field> head, const Fields& rest) {
    commands::xadd(alone, "k", terms, head, rest);
    series.add(head, rest);
  };
  add({}, {{"a", "1"}});
  add({}, {{"b", "2"}});
  add(first, {{"c", "3"}});
  add(first, {{"d", "4"}});
  add({}, {{"e", "5"}, {"f", "6"}});
  commands::xadd(alone, "other", {}, {}, {{"g", "7"}});
  commands::xadd(request, "other", {}, {}, {{"g", "7"}});
  add({}, {{"h", "8"}, {"i", "9"}});
  add({}, big);
  add({}, big);  // the buffer moves meanwhile
  EXPECT_EQ(request.bytes(), alone.bytes());
  EXPECT_EQ(request.commands(), 9U);
}

TEST(Xadd, IsGivenATrimAfterItWasEncoded) {
  const TrimTerms trims[] = {{.threshold = TrimTerms::MaxLen{5}},
                             {.threshold = TrimTerms::MinId{{9, 1}}, .exact = true, .limit = 7}};
  const std::string odd{"*2\r\n$1\r\n\0", 10};
  for (const std::string& key : {std::string{"k"}, odd, std::string(1'000, 'k')}) {
    for (const TrimTerms& trim : trims) {
      const auto with = [&](const AddTerms& terms) {
        return written([&](RequestBuffer& r) {
          commands::xadd(r, key, terms, {}, {{"f", "v"}, {odd, ""}});
        });
      };
      EXPECT_EQ(
          written([&](RequestBuffer& r) { commands::xadd_with_trim(r, key, trim, with({}), 2); }),
          with({.trim = trim}));
    }
  }
}

TEST(TrimTerms, TurnAnAgeIntoAnId) {
  const system_clock::time_point now{1'000'000ms};
  const auto id = [now](const Trim& trim) {
    return std::get<TrimTerms::MinId>(commands::trim_terms(trim, now).threshold).id;
  };
  EXPECT_EQ(id(Trim::max_age(1s)), (StreamId{999'000, 0}));
  EXPECT_EQ(id(Trim::max_age(0ms)), (StreamId{1'000'000, 0}));
  EXPECT_EQ(id(Trim::max_age(24h * 365 * 100)), StreamId{});
}

TEST(TrimTerms, KeepTheRest) {
  const auto terms = commands::trim_terms(Trim::max_len(7).limit(50), system_clock::now());
  EXPECT_EQ(std::get<TrimTerms::MaxLen>(terms.threshold).count, 7U);
  EXPECT_FALSE(terms.exact);
  EXPECT_EQ(terms.limit, 50U);
  EXPECT_TRUE(commands::trim_terms(Trim::min_id({1, 2}).exactly(), {}).exact);
}

TEST(Xread, WaitsOnlyIfItIsToldTo) {
  const auto xread = [](const ReadOptions& options) {
    return written([&](RequestBuffer& r) { commands::xread(r, "k", {5, 1}, options); });
  };
  EXPECT_EQ(xread({.count = 10, .block = 500ms}),
            wire({"XREAD", "COUNT", "10", "BLOCK", "500", "STREAMS", "k", "5-1"}));
  EXPECT_EQ(xread({.count = 1, .block = 0ms}),
            wire({"XREAD", "COUNT", "1", "STREAMS", "k", "5-1"}));
}

TEST(Xreadgroup, ReadsNewEntries) {
  const auto xreadgroup = [](const ReadOptions& options) {
    return written([&](RequestBuffer& r) { commands::xreadgroup(r, "k", "g", "c", options); });
  };
  EXPECT_EQ(xreadgroup({.count = 10, .block = 2s, .no_ack = true}),
            wire({"XREADGROUP", "GROUP", "g", "c", "COUNT", "10", "BLOCK", "2000", "NOACK",
                  "STREAMS", "k", ">"}));
  EXPECT_EQ(xreadgroup({.count = 1, .block = 0ms}),
            wire({"XREADGROUP", "GROUP", "g", "c", "COUNT", "1", "STREAMS", "k", ">"}));
}

TEST(Xreadgroup, ReadsOwnPendingEntries) {
  EXPECT_EQ(written([](RequestBuffer& r) {
              commands::xreadgroup_pending(r, "k", "g", "c", {5, 0}, 100);
            }),
            wire({"XREADGROUP", "GROUP", "g", "c", "COUNT", "100", "STREAMS", "k", "5-0"}));
}

TEST(Xack, NamesEachId) {
  const std::vector<StreamId> ids{{1, 0}, {2, 5}};
  EXPECT_EQ(written([&](RequestBuffer& r) { commands::xack(r, "k", "g", ids); }),
            wire({"XACK", "k", "g", "1-0", "2-5"}));
}

TEST(Xpending, HasTwoForms) {
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xpending(r, "k", "g"); }),
            wire({"XPENDING", "k", "g"}));
  const auto entries = [](const PendingQuery& query) {
    return written([&](RequestBuffer& r) { commands::xpending_entries(r, "k", "g", query); });
  };
  EXPECT_EQ(entries({}), wire({"XPENDING", "k", "g", "-", "+", "100"}));
  EXPECT_EQ(entries({.start = RangeStart::after({1, 0}),
                     .end = RangeEnd::before({9, 0}),
                     .count = 5,
                     .consumer = "c",
                     .min_idle = 1s}),
            wire({"XPENDING", "k", "g", "IDLE", "1000", "(1-0", "(9-0", "5", "c"}));
}

TEST(Xclaim, WritesEveryOptionAfterTheIds) {
  const std::vector<StreamId> ids{{1, 0}, {2, 0}};
  const auto xclaim = [&](const ClaimOptions& options, Payload payload) {
    return written(
        [&](RequestBuffer& r) { commands::xclaim(r, "k", "g", "c", 1s, ids, options, payload); });
  };
  EXPECT_EQ(xclaim({}, Payload::kWhole), wire({"XCLAIM", "k", "g", "c", "1000", "1-0", "2-0"}));
  EXPECT_EQ(xclaim({.idle = 5ms, .delivery_count = 0, .force = true, .last_id = StreamId{7, 0}},
                   Payload::kIdsOnly),
            wire({"XCLAIM", "k", "g", "c", "1000", "1-0", "2-0", "IDLE", "5", "RETRYCOUNT", "0",
                  "FORCE", "JUSTID", "LASTID", "7-0"}));
  EXPECT_EQ(xclaim({.time = system_clock::time_point{}}, Payload::kIdsOnly),
            wire({"XCLAIM", "k", "g", "c", "1000", "1-0", "2-0", "TIME", "0", "JUSTID"}));
}

TEST(Xautoclaim, NamesCursorAndCount) {
  EXPECT_EQ(written([](RequestBuffer& r) {
              commands::xautoclaim(r, "k", "g", "c", 30s, {4, 2}, 100);
            }),
            wire({"XAUTOCLAIM", "k", "g", "c", "30000", "4-2", "COUNT", "100"}));
}

TEST(Xrange, HasOpenInclusiveAndExclusiveEnds) {
  const auto xrange = [](const RangeStart& start, const RangeEnd& end) {
    return written([&](RequestBuffer& r) { commands::xrange(r, "k", start, end, 10); });
  };
  EXPECT_EQ(xrange({}, {}), wire({"XRANGE", "k", "-", "+", "COUNT", "10"}));
  EXPECT_EQ(xrange(StreamId{1, 0}, StreamId{2, 0}),
            wire({"XRANGE", "k", "1-0", "2-0", "COUNT", "10"}));
  EXPECT_EQ(
      xrange(RangeStart::after({1, 0}), RangeEnd::before(StreamId::max())),
      wire({"XRANGE", "k", "(1-0", "(18446744073709551615-18446744073709551615", "COUNT", "10"}));
  EXPECT_EQ(xrange(RangeStart::after({}), {}), wire({"XRANGE", "k", "(0-0", "+", "COUNT", "10"}));
}

TEST(Xrange, IsNotSentBeyondTheEndsOfAllIds) {
  EXPECT_TRUE(commands::is_beyond_all_ids(RangeStart::after(StreamId::max()), {}));
  EXPECT_TRUE(commands::is_beyond_all_ids({}, RangeEnd::before(StreamId::min())));
  EXPECT_FALSE(commands::is_beyond_all_ids(StreamId::max(), StreamId::min()));
  EXPECT_FALSE(commands::is_beyond_all_ids(RangeStart::after(StreamId::max().prev()),
                                           RangeEnd::before({0, 1})));
}

TEST(Xrevrange, NamesTheEndFirst) {
  EXPECT_EQ(written([](RequestBuffer& r) {
              commands::xrevrange(r, "k", StreamId{9, 0}, RangeStart::after({1, 0}), 3);
            }),
            wire({"XREVRANGE", "k", "9-0", "(1-0", "COUNT", "3"}));
}

TEST(Xtrim, HasAStrategyAPrecisionAndALimit) {
  const auto xtrim = [](const TrimTerms& terms) {
    return written([&](RequestBuffer& r) { commands::xtrim(r, "k", terms); });
  };
  EXPECT_EQ(xtrim({.threshold = TrimTerms::MaxLen{0}, .exact = true}),
            wire({"XTRIM", "k", "MAXLEN", "=", "0"}));
  EXPECT_EQ(xtrim({.threshold = TrimTerms::MinId{{5, 0}}, .limit = 0}),
            wire({"XTRIM", "k", "MINID", "~", "5-0", "LIMIT", "0"}));
}

TEST(Commands, AboutTheWholeStream) {
  const std::vector<StreamId> ids{{1, 0}};
  EXPECT_EQ(written([&](RequestBuffer& r) { commands::xdel(r, "k", ids); }),
            wire({"XDEL", "k", "1-0"}));
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xlen(r, "k"); }), wire({"XLEN", "k"}));
  EXPECT_EQ(written([](RequestBuffer& r) {
              commands::xsetid(r, "k", {5, 0});
            }),
            wire({"XSETID", "k", "5-0"}));
}

TEST(Xinfo, HasAllItsForms) {
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xinfo_stream(r, "k"); }),
            wire({"XINFO", "STREAM", "k"}));
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xinfo_stream_full(r, "k", 0); }),
            wire({"XINFO", "STREAM", "k", "FULL", "COUNT", "0"}));
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xinfo_groups(r, "k"); }),
            wire({"XINFO", "GROUPS", "k"}));
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xinfo_consumers(r, "k", "g"); }),
            wire({"XINFO", "CONSUMERS", "k", "g"}));
}

TEST(Xgroup, HasAllItsSubcommands) {
  const auto create = [](const GroupStart& start) {
    return written([&](RequestBuffer& r) { commands::xgroup_create(r, "k", "g", start); });
  };
  EXPECT_EQ(create(GroupStart::beginning()),
            wire({"XGROUP", "CREATE", "k", "g", "0-0", "MKSTREAM"}));
  EXPECT_EQ(create(GroupStart::now()), wire({"XGROUP", "CREATE", "k", "g", "$", "MKSTREAM"}));
  EXPECT_EQ(create(GroupStart::after({5, 1})),
            wire({"XGROUP", "CREATE", "k", "g", "5-1", "MKSTREAM"}));
  EXPECT_EQ(
      written([](RequestBuffer& r) { commands::xgroup_setid(r, "k", "g", GroupStart::now()); }),
      wire({"XGROUP", "SETID", "k", "g", "$"}));
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xgroup_destroy(r, "k", "g"); }),
            wire({"XGROUP", "DESTROY", "k", "g"}));
  EXPECT_EQ(written([](RequestBuffer& r) { commands::xgroup_createconsumer(r, "k", "g", "c"); }),
            wire({"XGROUP", "CREATECONSUMER", "k", "g", "c"}));
}

}  // namespace
}  // namespace millrace::detail
