#include "millrace_scripts.hpp"
#include "net/pool.hpp"
#include "support/stream_test.hpp"

#include <string>
#include <vector>

namespace millrace::test {
namespace {

using detail::Pool;
using detail::Reply;

/// The script of handover_pending, page by page.
class HandoverScript : public StreamTest {
 protected:
  struct Page {
    std::string next, end;
    std::int64_t moved;
  };

  Page page(const std::string& start, const std::string& end, const std::string& size) {
    const std::string_view keys[] = {"s"};
    const std::string_view args[] = {"g", "alice", "bob", start, end, size};
    const Reply reply = Pool::of(s().pool())
                            .eval({.command = "handover_pending", .key = "s"},
                                  detail::kHandoverPendingScript, keys, args);
    return {std::string{reply.root()[0].text()}, std::string{reply.root()[1].text()},
            reply.root()[2].integer()};
  }
};

TEST_P(HandoverScript, EndsAtWhatWasPendingWhenItBegan) {
  given_three_pending();
  const Page first = page("-", "", "2");
  EXPECT_EQ(first.moved, 2);
  EXPECT_EQ(first.next, "(2-0");
  EXPECT_EQ(first.end, "3-0");

  // The consumer still reads, faster than it is emptied.
  append(s(), {{4, 0}, {5, 0}, {6, 0}});
  s().consume("g", "alice", kAllNow);
  const Page second = page(first.next, first.end, "2");

  EXPECT_EQ(second.moved, 1);
  EXPECT_EQ(second.next, "");
  EXPECT_EQ(pending_text(s(), "g"),
            "1-0 bob 1, 2-0 bob 1, 3-0 bob 1, 4-0 alice 1, 5-0 alice 1, 6-0 alice 1");
}

MILLRACE_ON_BOTH_PROTOCOLS(HandoverScript);

}  // namespace
}  // namespace millrace::test
