#include "evidence.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Event = Record::Event;

/// What is wrong with the order in which one process handled the entries 1-0 to 9-0 of a lane.
std::vector<std::string> wrong_with(const Told& process) {
  std::vector<std::string> names = names_of(violations(evidence_of(9, {process})));
  std::erase_if(names, [](const std::string& name) { return !name.starts_with("out of order"); });
  return names;
}

TEST(LaneInvariants, WantOneAfterTheOther) {
  EXPECT_THAT(
      wrong_with(Told{"p"}.start_in_lane(1s, 1).succeed(2s, 1).start_in_lane(3s, 2).succeed(4s, 2)),
      IsEmpty());
  EXPECT_THAT(
      wrong_with(Told{"p"}.start_in_lane(1s, 1).start_in_lane(2s, 2).succeed(3s, 1).succeed(4s, 2)),
      ElementsAre("out of order in its lane 2-0"));
}

TEST(LaneInvariants, WantTheOrderOfTheStream) {
  EXPECT_THAT(
      wrong_with(Told{"p"}.start_in_lane(1s, 2).succeed(2s, 2).start_in_lane(3s, 1).succeed(4s, 1)),
      ElementsAre("out of order in its lane 1-0"));
}

TEST(LaneInvariants, LetAnEntryComeLateThatWasPendingElsewhere) {
  EXPECT_THAT(wrong_with(Told{"p"}
                             .start_in_lane(1s, 2)
                             .succeed(2s, 2)
                             .start_in_lane(3s, 1, 2)
                             .succeed(4s, 1)
                             .start_in_lane(5s, 3)
                             .succeed(6s, 3)),
              IsEmpty());
}

TEST(LaneInvariants, LetALaneWaitForARetry) {
  EXPECT_THAT(wrong_with(Told{"p"}
                             .start_in_lane(1s, 1)
                             .fail(2s, 1)
                             .start_in_lane(3s, 1, 2)
                             .succeed(4s, 1)
                             .start_in_lane(5s, 2)
                             .succeed(6s, 2)),
              IsEmpty());
  EXPECT_THAT(wrong_with(Told{"p"}
                             .start_in_lane(1s, 1)
                             .fail(2s, 1)
                             .start_in_lane(3s, 2)
                             .succeed(4s, 2)
                             .start_in_lane(5s, 1, 2)
                             .succeed(6s, 1)),
              ElementsAre("out of order in its lane 2-0"));
}

TEST(LaneInvariants, FreeTheLaneOfAnEntryThatIsNoLongerOurs) {
  for (const Event event : {Event::kBuried, Event::kLeaseLost}) {
    EXPECT_THAT(wrong_with(Told{"p"}
                               .start_in_lane(1s, 1)
                               .fail(2s, 1)
                               .event(event, 3s, 1)
                               .start_in_lane(4s, 2)
                               .succeed(5s, 2)),
                IsEmpty());
  }
  EXPECT_THAT(wrong_with(Told{"p"}
                             .start_in_lane(1s, 1)
                             .event(Event::kStopFired, 2s, 1)
                             .fail(3s, 1)
                             .start_in_lane(4s, 2)
                             .succeed(5s, 2)),
              IsEmpty());
}

TEST(LaneInvariants, LetTheLossOfALeaseBeToldALittleLater) {
  const auto wrong_if_told_at = [](Moment told) {
    return wrong_with(Told{"p"}
                          .start_in_lane(1s, 1)
                          .fail(2s, 1)
                          .start_in_lane(4s, 2)
                          .event(Event::kLeaseLost, told, 1)
                          .succeed(9s, 2));
  };
  EXPECT_THAT(wrong_if_told_at(4'900ms), IsEmpty());
  EXPECT_THAT(wrong_if_told_at(5'100ms), ElementsAre("out of order in its lane 2-0"));
}

TEST(LaneInvariants, FreeTheLaneOfAnEntryThatFailedForGood) {
  EXPECT_THAT(wrong_with(Told{"p"}
                             .start_in_lane(1s, 1)
                             .event(Event::kRefused, 2s, 1)
                             .start_in_lane(3s, 2)
                             .succeed(4s, 2)),
              IsEmpty());
  EXPECT_THAT(
      wrong_with(Told{"p"}.start_in_lane(1s, 1, 5).fail(2s, 1).start_in_lane(3s, 2).succeed(4s, 2)),
      IsEmpty());
}

TEST(LaneInvariants, HoldBackOneLaneAlone) {
  Told p = Told{"p"}.start_in_lane(1s, 1).fail(2s, 1);
  p.start(3s, 2).succeed(4s, 2);  // of no lane
  EXPECT_THAT(wrong_with(p), IsEmpty());
}

TEST(LaneInvariants, HoldWithinOneProcess) {
  const Evidence evidence = evidence_of(2, {Told{"p"}.start_in_lane(1s, 2).succeed(4s, 2),
                                            Told{"q"}.start_in_lane(2s, 1).succeed(3s, 1)});
  EXPECT_THAT(names_of(violations(evidence)), IsEmpty());
}

}  // namespace
}  // namespace millrace::test
