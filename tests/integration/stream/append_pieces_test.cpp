#include "support/proxy.hpp"
#include "support/stream_test.hpp"

#include <algorithm>

namespace millrace::test {
namespace {

/// A batch that is too big for one round trip goes out in pieces.
class AppendPieces : public StreamTest {
 protected:
  static std::vector<OwnedFields> numbered(std::size_t count, const std::string& value = {}) {
    std::vector<OwnedFields> entries;
    for (std::size_t i = 0; i < count; ++i)
      entries.push_back({{"i", std::to_string(i)}, {"v", value}});
    return entries;
  }

  void expect_numbered(std::size_t first, std::size_t count) {
    std::size_t i = first;
    for (const Entry& entry : s().replay_all()) {
      ASSERT_EQ(entry.at("i"), std::to_string(i));
      ++i;
    }
    EXPECT_EQ(i, first + count);
  }
};

TEST_P(AppendPieces, OfManyEntriesKeepTheirOrder) {
  const auto results = s().add_batch(numbered(25'000));
  ASSERT_EQ(results.size(), 25'000U);
  EXPECT_TRUE(std::is_sorted(results.begin(), results.end(), [](const auto& a, const auto& b) {
    return a.id.value() < b.id.value();
  }));
  expect_numbered(0, 25'000);
}

TEST_P(AppendPieces, OfManyBytesKeepTheirOrder) {
  const auto results = s().add_batch(numbered(20, std::string(3 << 20, 'x')));
  EXPECT_TRUE(std::all_of(results.begin(), results.end(),
                          [](const auto& result) { return result.id.has_value(); }));
  expect_numbered(0, 20);
}

TEST_P(AppendPieces, TrimWithTheLastEntryOfTheLastOne) {
  s().add_batch(numbered(25'000), {.trim = Trim::max_len(24'999).exactly()});
  expect_numbered(1, 24'999);
}

TEST_P(AppendPieces, TrimWithTheLastEntryThatIsSent) {
  auto entries = numbered(10);
  entries.push_back({});
  const auto results = s().add_batch(entries, {.trim = Trim::max_len(3).exactly()});
  EXPECT_EQ(results.back().error->code(), Error::Code::kInvalidArgument);
  expect_numbered(7, 3);
}

TEST_P(AppendPieces, BehindABrokenOneAreNotSent) {
  Proxy proxy{server()};
  ConnectionOptions through = proxy.options();
  through.resp_version = GetParam();
  const EventStream behind{ConnectionPool{through}, "s"};
  proxy.lose_reply_to("XADD", 1);

  const auto results = behind.add_batch(numbered(15'000));

  ASSERT_TRUE(proxy.has_lost());
  ASSERT_EQ(results.size(), 15'000U);
  for (std::size_t i = 10'000; i < 15'000; ++i) {
    ASSERT_EQ(results[i].error->outcome(), Outcome::kNotApplied) << i;
    ASSERT_THAT(results[i].error->what(), ::testing::EndsWith("has not been applied"));
  }
  const auto unknown = std::count_if(results.begin(), results.end(), [](const auto& result) {
    return result.error && result.error->outcome() == Outcome::kUnknown;
  });
  EXPECT_GT(unknown, 0);
  const auto added = std::count_if(results.begin(), results.end(),
                                   [](const auto& result) { return result.id.has_value(); });
  // What is in the stream is what succeeded, and some of what is unknown.
  EXPECT_GE(s().length(), static_cast<std::uint64_t>(added));
  EXPECT_LE(s().length(), static_cast<std::uint64_t>(added + unknown));
}

MILLRACE_ON_BOTH_PROTOCOLS(AppendPieces);

}  // namespace
}  // namespace millrace::test
