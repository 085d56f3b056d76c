#include "support/stream_test.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <string_view>

namespace millrace::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::size_t kMaxBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxArguments = 1'048'576;

/// Bytes that are there to be counted. They cost no memory until somebody reads them.
class Expanse {
 public:
  explicit Expanse(std::size_t size)
      : size_{size},
        bytes_{
            ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)} {}
  Expanse(const Expanse&) = delete;
  Expanse& operator=(const Expanse&) = delete;
  ~Expanse() { ::munmap(bytes_, size_); }
  std::string_view view() const { return {static_cast<const char*>(bytes_), size_}; }

 private:
  std::size_t size_;
  void* bytes_;
};

class Limits : public StreamTest {
 protected:
  /// Refused, with the limit in the message, and nothing of the call was sent: a connection that
  /// was borrowed for it goes on.
  template <typename Call>
  void expect_refused(Call&& call, const ::testing::Matcher<const char*>& limit) {
    const auto error = thrown<InvalidArgument>(std::forward<Call>(call));
    EXPECT_EQ(error.outcome(), Outcome::kNotApplied);
    EXPECT_FALSE(error.retryable());
    EXPECT_THAT(error.what(), limit);
    EXPECT_EQ(raw()("EXISTS", "s"), ":0");
    s().pool().ping();
    EXPECT_EQ(s().pool().stats().created, 1U);
  }

  const ::testing::Matcher<const char*> kNamesBytes =
      AnyOf(HasSubstr("512 MiB"), HasSubstr("536870912"), HasSubstr("536,870,912"));
  const ::testing::Matcher<const char*> kNamesArguments =
      AnyOf(HasSubstr("1048576"), HasSubstr("1,048,576"));
};

TEST_P(Limits, AValueOfMoreThan512MiBIsRefused) {
  const Expanse large{kMaxBytes + 1};
  expect_refused([&] { s().add({{"f", large.view()}}); }, kNamesBytes);
}

TEST_P(Limits, ANameOfMoreThan512MiBIsRefused) {
  const Expanse large{kMaxBytes + 1};
  expect_refused([&] { s().add({{large.view(), "v"}}); }, kNamesBytes);
}

TEST_P(Limits, AnEventTypeOfMoreThan512MiBIsRefused) {
  const Expanse large{kMaxBytes + 1};
  expect_refused([&] { s().produce(large.view(), {{"f", "v"}}); }, kNamesBytes);
}

TEST_P(Limits, AConsumerNameOfMoreThan512MiBIsRefused) {
  const Expanse large{kMaxBytes + 1};
  expect_refused([&] { s().consume("g", large.view(), kAllNow); }, kNamesBytes);
}

TEST_P(Limits, AnEntryOfMoreThanAMillionArgumentsIsRefused) {
  const std::vector<Field> fields(kMaxArguments / 2 - 1, Field{"f", "v"});  // and XADD, key, id
  expect_refused([&] { s().add(fields); }, kNamesArguments);
}

TEST_P(Limits, AnEntryOfAsManyArgumentsAsAllowedIsTaken) {
  const std::vector<Field> fields(kMaxArguments / 2 - 2, Field{"f", "v"});
  s().add(fields);
  EXPECT_EQ(s().tail(1).begin()->size(), fields.size());
}

TEST_P(Limits, AnAcknowledgementOfMoreThanAMillionArgumentsIsRefused) {
  const Ids ids(kMaxArguments, StreamId{1, 0});
  expect_refused([&] { s().ack("g", ids); }, kNamesArguments);
}

TEST_P(Limits, ACallAfterARefusedOneIsUndisturbed) {
  const Expanse large{kMaxBytes + 1};
  append(s(), {{1, 0}});
  EXPECT_THROW(s().add({{"first", "1"}, {"f", large.view()}}), InvalidArgument);
  append(s(), {{2, 0}});
  EXPECT_EQ(text(s().replay()), "1-0[f=v] 2-0[f=v]");
  EXPECT_EQ(s().pool().stats().created, 1U);
}

MILLRACE_ON_BOTH_PROTOCOLS(Limits);

}  // namespace
}  // namespace millrace::test
