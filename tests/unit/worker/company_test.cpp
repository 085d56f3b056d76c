#include "worker/company.hpp"

#include "support/sleeping.hpp"
#include "support/wait_until.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

namespace millrace::detail {
namespace {

using Pass = Company::Pass;
using enum Company::Pass::Wish;

/// A thread that asks to go in, and leaves when the test lets it.
class Visitor {
 public:
  Visitor(Company& company, Pass::Wish wish)
      : thread_{[this, &company, wish] {
          id_ = gettid();
          const Pass pass{company, wish};
          is_inside_ = pass.is_inside();
          has_asked_ = true;
          static_cast<void>(test::wait_until([this] { return may_leave_.load(); }));
        }} {}
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  ~Visitor() { leave(); }

  bool waits() {
    return test::wait_until([this] { return id_ != 0 && !has_asked_ && test::sleeps(id_); });
  }
  bool goes_in() {
    return test::wait_until([this] { return has_asked_.load(); }) && is_inside_;
  }
  bool is_refused() {
    return test::wait_until([this] { return has_asked_.load(); }) && !is_inside_;
  }
  void leave() {
    may_leave_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> is_inside_{false};
  std::atomic<bool> has_asked_{false};
  std::atomic<bool> may_leave_{false};
  std::thread thread_;
};

TEST(Company, IsSharedByThoseWhoDoNotCare) {
  Company company;
  Visitor first{company, kAny};
  ASSERT_TRUE(first.goes_in());
  Visitor second{company, kAny};
  EXPECT_TRUE(second.goes_in());
}

TEST(Company, KeepsOutEverybodyWhileSomebodyIsAlone) {
  Company company{test::kGenerous};
  Visitor alone{company, kAlone};
  ASSERT_TRUE(alone.goes_in());
  Visitor other{company, kAny};
  EXPECT_TRUE(other.waits());
  Visitor alone_too{company, kAlone};
  EXPECT_TRUE(alone_too.waits());
  alone.leave();
  EXPECT_TRUE(alone_too.goes_in());
  alone_too.leave();
  EXPECT_TRUE(other.goes_in());
}

TEST(Company, HasWhoWantsToBeAloneWaitForThoseInsideAndLetsNobodyInBefore) {
  Company company{test::kGenerous};
  Visitor inside{company, kAny};
  ASSERT_TRUE(inside.goes_in());
  Visitor alone{company, kAlone};
  ASSERT_TRUE(alone.waits());
  Visitor late{company, kAny};
  EXPECT_TRUE(late.waits());
  inside.leave();
  EXPECT_TRUE(alone.goes_in());
  alone.leave();
  EXPECT_TRUE(late.goes_in());
}

TEST(Company, LosesPatienceAndGoesOnWithTheOthers) {
  Company company{Milliseconds{1}};
  Visitor inside{company, kAny};
  ASSERT_TRUE(inside.goes_in());
  Visitor alone{company, kAlone};
  EXPECT_TRUE(alone.is_refused()) << "the one inside may wait for another one";
  Visitor other{company, kAny};
  EXPECT_TRUE(other.goes_in());
}

TEST(Company, HasNobodyWaitForSeveralWhoWantToBeAloneInTurn) {
  Company company{Milliseconds{20}};
  Visitor inside{company, kAny};
  ASSERT_TRUE(inside.goes_in());
  std::atomic<bool> is_over{false};
  std::atomic<int> in_vain{0};
  const auto try_on = [&] {
    while (!is_over) {
      const Pass pass{company, kAlone};
      ++in_vain;
    }
  };
  std::thread first{try_on};
  EXPECT_TRUE(test::wait_until([&] { return in_vain > 0; }));
  std::thread second{try_on};
  EXPECT_TRUE(test::wait_until([&] { return in_vain > 3; }));
  Visitor other{company, kAny};
  EXPECT_TRUE(other.goes_in());
  is_over = true;
  first.join();
  second.join();
}

TEST(Company, CountsNobodyOutWhoWasNotIn) {
  Company company{Milliseconds{1}};
  {
    Visitor inside{company, kAny};
    ASSERT_TRUE(inside.goes_in());
    Visitor refused{company, kAlone};
    ASSERT_TRUE(refused.is_refused());
    refused.leave();
    Visitor again{company, kAlone};
    EXPECT_TRUE(again.is_refused()) << "the first one is inside still";
  }
  Visitor alone{company, kAlone};
  EXPECT_TRUE(alone.goes_in());
}

TEST(Company, LetsACallInsideACallInWithoutWaitingButNeverAlone) {
  Company company{test::kGenerous};
  std::optional<Pass> outer{std::in_place, company, kAny};
  Visitor alone{company, kAlone};
  ASSERT_TRUE(alone.waits());
  {
    const Pass inner{company, kAny};
    EXPECT_TRUE(inner.is_inside()) << "to wait for the one who waits for us would be for ever";
    EXPECT_FALSE((Pass{company, kAlone}.is_inside()));
    EXPECT_TRUE((Pass{company, kAny}.is_inside())) << "a refusal is not counted";
  }
  EXPECT_TRUE(alone.waits()) << "the outer call is inside still";
  outer.reset();
  EXPECT_TRUE(alone.goes_in());
}

TEST(Company, LetsACallInsideOneThatIsAloneIn) {
  Company company{test::kGenerous};
  {
    const Pass alone{company, kAlone};
    ASSERT_TRUE(alone.is_inside());
    EXPECT_TRUE((Pass{company, kAny}.is_inside()));
  }
  Visitor next{company, kAlone};
  EXPECT_TRUE(next.goes_in());
}

TEST(Company, IsOneOfTheWholeProcess) { EXPECT_EQ(&Company::of_process(), &Company::of_process()); }

}  // namespace
}  // namespace millrace::detail
