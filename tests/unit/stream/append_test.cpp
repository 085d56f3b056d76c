#include "stream/append.hpp"

#include "protocol/server_error.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace millrace::detail {
namespace {

using namespace std::chrono_literals;
using commands::AddTerms;
using commands::TrimTerms;

StreamCore core(StreamOptions options = {}) {
  return {.pool = ConnectionPool{{.unix_socket = "/nonexistent/millrace"}},
          .key = "s",
          .options = options};
}

/// What the server answers to an XADD.
Error refusal(std::string_view line) { return server_error(line, {.command = "XADD", .key = "s"}); }

TEST(Envelope, PutsTypeAndTimeFirst) {
  using std::chrono::system_clock;
  const auto before = std::chrono::floor<Milliseconds>(system_clock::now()).time_since_epoch();
  const Envelope envelope;
  const auto after = std::chrono::floor<Milliseconds>(system_clock::now()).time_since_epoch();

  const auto fields = envelope.fields("order.placed");

  EXPECT_EQ(fields[0], (Field{"type", "order.placed"}));
  EXPECT_EQ(fields[1].first, "ts_ms");
  const auto time = std::stoll(std::string{fields[1].second});
  EXPECT_GE(time, before.count());
  EXPECT_LE(time, after.count());
}

TEST(Envelope, RefusesItsOwnNamesInAPayloadAndNoOthers) {
  EXPECT_THROW(Envelope::check_payload({{"a", "1"}, {"type", "2"}}), InvalidArgument);
  EXPECT_THROW(Envelope::check_payload({{"ts_ms", ""}}), InvalidArgument);
  EXPECT_NO_THROW(Envelope::check_payload({{"Type", "1"}, {"ts", "2"}, {"", "type"}}));
  EXPECT_NO_THROW(Envelope::check_payload(OwnedFields{}));
}

TEST(AddTerms, PreferTheCallsTrimToTheStreamsRetention) {
  const StreamCore stream = core({.retention = Trim::max_len(100)});
  const auto length = [&](const AddOptions& options) {
    return std::get<TrimTerms::MaxLen>(add_terms(stream, options).trim->threshold).count;
  };
  EXPECT_EQ(length({}), 100U);
  EXPECT_EQ(length({.trim = Trim::max_len(7)}), 7U);
  EXPECT_EQ(add_terms(core(), {}).trim, std::nullopt);
}

TEST(AddTerms, CountAnAgeFromNow) {
  const StreamCore stream = core({.retention = Trim::max_age(1h)});
  const auto now = std::chrono::floor<Milliseconds>(std::chrono::system_clock::now());
  const auto id = std::get<TrimTerms::MinId>(add_terms(stream, {}).trim->threshold).id;
  const auto expected = static_cast<std::uint64_t>((now - 1h).time_since_epoch().count());
  EXPECT_GE(id.ms, expected);
  EXPECT_LT(id.ms, expected + 60'000);
}

// An older server takes an option that it does not know for a malformed id.
TEST(AppendError, NamesTheVersionThatAnOptionNeeds) {
  const Error error = refusal("ERR Invalid stream ID specified as stream command argument");
  const struct {
    AddTerms terms;
    const char* says;
  } cases[] = {
      {{.id = AddId::at_ms(5)}, "AddId::at_ms needs Redis 7.0"},
      {{.create_stream = false}, "create_stream = false needs Redis 6.2"},
      {{.trim = TrimTerms{.threshold = TrimTerms::MinId{{1, 0}}}}, "need Redis 6.2"},
      {{.trim = TrimTerms{.threshold = TrimTerms::MaxLen{1}, .limit = 5}}, "need Redis 6.2"},
  };
  for (const auto& each : cases) {
    const Error named = append_error(error, each.terms);
    EXPECT_EQ(named.code(), Error::Code::kUnsupported);
    EXPECT_NE(std::string{named.what()}.find(each.says), std::string::npos) << named.what();
  }
}

TEST(AppendError, LeavesOtherErrorsAlone) {
  const Error invalid_id = refusal("ERR Invalid stream ID specified as stream command argument");
  EXPECT_EQ(append_error(invalid_id, {}).code(), Error::Code::kServer);
  const Error smaller =
      refusal("ERR The ID specified in XADD is equal or smaller than the target stream top item");
  EXPECT_STREQ(append_error(smaller, {.id = AddId::at_ms(5)}).what(), smaller.what());
  const Error wrong_type = refusal("WRONGTYPE Operation against a key");
  EXPECT_EQ(append_error(wrong_type, {.id = AddId::at_ms(5)}).code(), Error::Code::kWrongType);
}

}  // namespace
}  // namespace millrace::detail
