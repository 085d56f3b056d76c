// One workload on a running server: instructions.sh counts the instructions of it.
//
//     instructions SOCKET WORKLOAD ENTRIES

#include <millrace/consumer_worker.hpp>
#include <millrace/event_stream.hpp>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace std::chrono_literals;
using millrace::EventStream;

constexpr std::size_t kPage = 100;
constexpr std::string_view kGroup = "group";
constexpr std::string_view kConsumer = "consumer";

/// The small entry: 4 fields, 66 bytes.
const millrace::OwnedFields kEntry{{"order_id", "1000017"},
                                   {"customer", "customer-00042"},
                                   {"total", "129.90"},
                                   {"state", "waiting-for-payment"}};

void check(bool holds, const char* what) {
  if (!holds) throw std::runtime_error{what};
}

void append(const EventStream& stream, std::size_t entries) {
  for (std::size_t i = 0; i < entries; ++i) stream.add(kEntry);
}

void append_in_batches(const EventStream& stream, std::size_t entries) {
  const std::vector<millrace::OwnedFields> batch(kPage, kEntry);
  for (std::size_t i = 0; i < entries; i += kPage) {
    check(stream.add_batch(batch).back().id.has_value(), "a batch was not appended");
  }
}

void consume(const EventStream& stream, std::size_t entries) {
  for (std::size_t seen = 0; seen < entries;) {
    const auto batch = stream.consume(kGroup, kConsumer, {.count = kPage, .block = 0ms});
    check(batch.size() == kPage && batch[0].size() == kEntry.size(), "too little was read");
    seen += stream.ack(kGroup, batch);
  }
}

void claim(const EventStream& stream, std::size_t entries) {
  for (std::size_t seen = 0; seen < entries; seen += kPage) {
    const auto batch = stream.consume(kGroup, kConsumer, {.count = kPage, .block = 0ms});
    check(stream.claim(kGroup, "other", 0ms, batch).claimed.size() == kPage, "too little claimed");
  }
}

void autoclaim(const EventStream& stream, std::size_t entries) {
  millrace::AutoclaimOptions options{.min_idle = 0ms, .count = kPage};
  for (std::size_t seen = 0; seen < entries; seen += kPage) {
    const auto page = stream.autoclaim_page(kGroup, "other", options);
    check(page.claimed.size() == kPage, "too little was claimed");
    options.start = page.next_cursor;
  }
}

void replay(const EventStream& stream, std::size_t entries) {
  std::size_t seen = 0;
  for (const auto& entry : stream.replay_all({}, {}, kPage)) {
    if (entry.size() == kEntry.size()) ++seen;
    if (seen == entries) return;
  }
  check(false, "too little was replayed");
}

void work(const EventStream& stream, std::size_t entries) {
  std::size_t handled = 0;
  std::binary_semaphore done{0};
  millrace::ConsumerWorker worker{stream,
                                  {.group = std::string{kGroup},
                                   .group_start = millrace::GroupStart::beginning(),
                                   .prefetch = 2 * kPage},
                                  [&](const millrace::Delivery&) {
                                    if (++handled == entries) done.release();
                                  }};
  worker.start();
  done.acquire();
  worker.stop();
}

/// What a workload finds in the stream.
void fill(const EventStream& stream, std::size_t entries) {
  append_in_batches(stream, entries);
  stream.ensure_group(kGroup, millrace::GroupStart::beginning());
}

/// And in the group's pending list.
void fill_pending(const EventStream& stream, std::size_t entries) {
  fill(stream, entries);
  for (std::size_t i = 0; i < entries; i += kPage) {
    stream.consume(kGroup, kConsumer, {.count = kPage, .block = 0ms});
  }
}

const std::map<std::string_view, std::function<void(const EventStream&, std::size_t)>> kWorkloads{
    {"append", append},
    {"batch", append_in_batches},
    {"consume", consume},
    {"worker", work},
    {"claim", claim},
    {"autoclaim", autoclaim},
    {"replay", replay},
    {"fill", fill},
    {"fill-pending", fill_pending}};

}  // namespace

int main(int argc, char** argv) try {
  const auto workload = kWorkloads.find(argc == 4 ? argv[2] : "");
  if (workload == kWorkloads.end()) {
    std::fprintf(stderr, "usage: %s SOCKET WORKLOAD ENTRIES\n", argv[0]);
    return 64;
  }
  const EventStream stream{millrace::ConnectionPool{{.unix_socket = argv[1]}}, "stream"};
  workload->second(stream, std::stoul(argv[3]));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "instructions: %s\n", error.what());
  return 1;
}
