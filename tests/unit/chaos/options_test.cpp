#include "options.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace chaos {
namespace {

Options parse(std::initializer_list<std::string> arguments) {
  std::vector<std::string> words{"chaos"};
  words.insert(words.end(), arguments);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

TEST(ChaosOptions, AreThreeMinutesWith200000EntriesAndAFreshSeed) {
  const Options options = parse({});
  EXPECT_EQ(options.entries, 200'000U);
  EXPECT_EQ(options.duration(), std::chrono::minutes{3});
  EXPECT_NE(options.seed, parse({}).seed);
}

TEST(ChaosOptions, TakeASeedAndMinutes) {
  const Options options = parse({"--seed", "18446744073709551615", "--minutes", "0.5"});
  EXPECT_EQ(options.seed, 18446744073709551615U);
  EXPECT_EQ(options.duration(), std::chrono::seconds{30});
  EXPECT_EQ(options.entries, 33'333U);
  EXPECT_EQ(parse({"--entries", "5000"}).entries, 5'000U);
}

TEST(ChaosOptions, RefuseWhatMakesNoSense) {
  for (const auto& bad :
       std::initializer_list<std::initializer_list<std::string>>{{"--seed"},
                                                                 {"--seed", "x"},
                                                                 {"--seed", "-1"},
                                                                 {"--minutes", "0"},
                                                                 {"--minutes", "nan"},
                                                                 {"--minutes", "61"},
                                                                 {"--entries", "1"},
                                                                 {"--speed", "1"}}) {
    EXPECT_THROW(parse(bad), BadOption) << *bad.begin();
  }
}

}  // namespace
}  // namespace chaos
