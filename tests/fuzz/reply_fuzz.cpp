// libFuzzer's way into read_both_ways.hpp. The first byte says what is expected, the second one
// where the bytes behind them are cut.
//
//     cmake --preset clang -DCMAKE_CXX_FLAGS=-fsanitize=address,undefined,fuzzer-no-link
//     cmake --build --preset clang --target reply_fuzz
//     build/clang/tests/fuzz/reply_fuzz -max_total_time=600 -max_len=600 a_folder_of_replies
//
// Without these flags the library is not watched, and libFuzzer does not see which way it took.

#include "fuzz/read_both_ways.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  if (size < 2) return 0;
  const auto shape = static_cast<detail::ReplyShape>(data[0] % 4);
  const std::string_view bytes{reinterpret_cast<const char*>(data) + 2, size - 2};
  if (!test::is_affordable(bytes)) return 0;
  const auto cut_from = [seed = data[1]] {
    // 0: whole; 1: each byte for itself; else at random.
    return [seed, random = std::minstd_rand{seed}](std::size_t left) mutable -> std::size_t {
      if (seed == 0) return left;
      return seed == 1 ? 1 : 1 + random() % std::min<std::size_t>(left, 3U * seed);
    };
  };
  const auto ours = test::read_by_us(shape, bytes, cut_from());
  const auto theirs = test::read_by_hiredis(shape, bytes, cut_from());
  if (ours == theirs) return 0;
  std::fprintf(stderr, "ours:    %s\nhiredis: %s\n", ours.c_str(), theirs.c_str());
  std::abort();
}
