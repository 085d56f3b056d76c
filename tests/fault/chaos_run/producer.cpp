#include "producer.hpp"

#include <algorithm>
#include <utility>

namespace chaos {

using namespace millrace;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kBatch = 200;

/// Between two looks at what is due, and before an append that failed is made again.
constexpr auto kPace = 10ms;

}  // namespace

Producer::Producer(EventStream stream, const Workload& workload, std::chrono::milliseconds duration)
    : stream_{std::move(stream)},
      workload_{workload},
      duration_{duration},
      thread_{[this](const std::stop_token& stop) { run(stop); }} {}

Producer::~Producer() { thread_.request_stop(); }

/// How many should be there by now.
std::uint64_t Producer::due() const {
  const auto passed = std::chrono::steady_clock::now() - start_;
  const double part =
      std::chrono::duration<double>(passed) / std::chrono::duration<double>(duration_);
  return static_cast<std::uint64_t>(static_cast<double>(workload_.size()) * std::min(part, 1.0));
}

void Producer::run(const std::stop_token& stop) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t next = 0; !stop.stop_requested();) {
    while (next < due() && numbers.size() < kBatch) numbers.push_back(next++);
    if (numbers.empty() && next == workload_.size()) break;
    append(numbers);
    if (!numbers.empty() || next >= due()) std::this_thread::sleep_for(kPace);
  }
  done_ = true;
}

/// What was not appended stays in `numbers`.
void Producer::append(std::vector<std::uint64_t>& numbers) {
  if (numbers.empty()) return;
  std::vector<OwnedFields> entries;
  for (const std::uint64_t number : numbers) entries.push_back(workload_.fields(number));
  std::vector<AddResult> results;
  try {
    results = stream_.add_batch(entries);
  } catch (const Error&) {
    return;  // not one was sent
  }
  std::vector<std::uint64_t> again;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].id) {
      appended_.push_back(*results[i].id);
      continue;
    }
    again.push_back(numbers[i]);
    if (results[i].error && results[i].error->outcome() == Outcome::kUnknown) ++unknown_;
  }
  numbers = std::move(again);
}

}  // namespace chaos
