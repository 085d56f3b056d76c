// Reading: as a group and acknowledged, taken over, and replayed.

#include "bench/raw.hpp"

#include <millrace/consumer_worker.hpp>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::bench {
namespace {

constexpr std::size_t kRead = 60'000;
constexpr std::size_t kReadOneByOne = 5'000;  ///< Acknowledged one by one: that takes long.
constexpr std::size_t kTakenOver = 50'000;
constexpr std::size_t kReplayed = 1'000'000;
constexpr std::size_t kBigReplayed = 100'000;

std::size_t replayed(Size size) { return size == Size::kSmall ? kReplayed : kBigReplayed; }

EventStream filled_stream(Link link, Size size, std::size_t entries) {
  return {ConnectionPool{the_bench().options(link)}, the_bench().filled(size, entries)};
}

/// The group `bench`, as new, at the beginning of what is filled.
void make_group(const EventStream& stream) {
  stream.delete_group("bench");
  stream.ensure_group("bench", GroupStart::beginning());
}

/// One batch more for the consumer `bench`.
RawReply read_batch(Raw& raw, std::string_view key) {
  return raw.command(
      {"XREADGROUP", "GROUP", "bench", "bench", "COUNT", "100", "STREAMS", key, ">"});
}

void consume_with_hiredis(benchmark::State& state, Link link, Size size, bool one_by_one) {
  const EventStream stream = filled_stream(link, size, kRead);
  make_group(stream);
  Raw raw{link};
  const std::size_t entries = one_by_one ? kReadOneByOne : kRead;
  Meter meter;
  for (std::size_t done = 0; done < entries;) {
    const RawReply reply = read_batch(raw, stream.key());
    const redisReply* batch = entries_of(reply);
    Raw::Args ack{"XACK", stream.key(), "bench"};
    for (std::size_t i = 0; i < batch->elements; ++i) {
      const redisReply& entry = *batch->element[i];
      touch(entry);
      ack.emplace_back(entry.element[0]->str, entry.element[0]->len);
      if (!one_by_one) continue;
      raw.command(ack);
      ack.pop_back();
    }
    if (!one_by_one) raw.command(ack);
    done += batch->elements;
  }
  meter.stop(state, entries);
}

void consume(benchmark::State& state, Link link, Size size) {
  const EventStream stream = filled_stream(link, size, kRead);
  make_group(stream);
  const ReadOptions options{.count = 100, .block = std::chrono::milliseconds{0}};
  Meter meter;
  for (std::size_t done = 0; done < kRead;) {
    const EntryBatch batch = stream.consume("bench", "bench", options);
    for (const Entry& entry : batch) touch(entry);
    done += stream.ack("bench", batch);
  }
  meter.stop(state, kRead);
}

void consume_with_a_worker(benchmark::State& state, Link link, Size size, bool metrics) {
  const EventStream stream = filled_stream(link, size, kRead);
  make_group(stream);
  std::atomic<std::size_t> handled = 0;
  std::atomic<bool> has_all = false;
  ConsumerWorker worker{stream,
                        {.group = "bench",
                         .consumer = "bench",
                         .group_start = GroupStart::beginning(),
                         .prefetch = 200,
                         .metrics = metrics},
                        [&](const Delivery&) {
                          if (handled.fetch_add(1, std::memory_order_relaxed) + 1 == kRead) {
                            has_all = true;
                            has_all.notify_one();
                          }
                        }};
  Meter meter;
  worker.start();
  has_all.wait(false);
  meter.stop(state, kRead);
  worker.stop();
  const std::uint64_t left = stream.pending("bench").count;
  if (left != 0) state.SkipWithError("entries stayed pending");
}

/// Everything is pending for a consumer that is no more.
void leave_pending(const EventStream& stream) {
  make_group(stream);
  Raw raw{Link::kUnix};
  for (std::size_t left = kTakenOver; left > 0; left -= 1000) {
    raw.command(
        {"XREADGROUP", "GROUP", "bench", "gone", "COUNT", "1000", "STREAMS", stream.key(), ">"});
  }
}

void take_over_with_hiredis(benchmark::State& state, Link link, Size size) {
  const EventStream stream = filled_stream(link, size, kTakenOver);
  leave_pending(stream);
  Raw raw{link};
  std::string cursor = "0-0";
  std::size_t taken = 0;
  Meter meter;
  do {
    const RawReply reply =
        raw.command({"XAUTOCLAIM", stream.key(), "bench", "bench", "0", cursor, "COUNT", "100"});
    const redisReply& batch = *reply->element[1];
    for (std::size_t i = 0; i < batch.elements; ++i) touch(*batch.element[i]);
    taken += batch.elements;
    cursor.assign(reply->element[0]->str, reply->element[0]->len);
  } while (cursor != "0-0");
  meter.stop(state, taken);
}

void take_over(benchmark::State& state, Link link, Size size) {
  const EventStream stream = filled_stream(link, size, kTakenOver);
  leave_pending(stream);
  AutoclaimOptions options{.min_idle = std::chrono::milliseconds{0}, .count = 100};
  std::size_t taken = 0;
  Meter meter;
  for (;;) {
    const AutoclaimResult result = stream.autoclaim("bench", "bench", options);
    if (result.error) result.error->raise();
    for (const Entry& entry : result.claimed) touch(entry);
    taken += result.claimed.size();
    if (result.complete()) break;
    options.start = result.next_cursor;
  }
  meter.stop(state, taken);
}

/// The most memory that this process had so far, in MB.
double peak_megabytes() {
  std::ifstream file{"/proc/self/status"};
  for (std::string word; file >> word;) {
    if (word != "VmHWM:") continue;
    double kilobytes = 0;
    file >> kilobytes;
    return kilobytes / 1024;
  }
  return 0;
}

/// From here on the peak is what the process has now.
void forget_the_peak() { std::ofstream{"/proc/self/clear_refs"} << "5"; }

void replay_with_hiredis(benchmark::State& state, Link link, Size size) {
  const EventStream stream = filled_stream(link, size, replayed(size));
  Raw raw{link};
  std::string from = "-";
  std::size_t seen = 0;
  Meter meter;
  for (;;) {
    const RawReply reply = raw.command({"XRANGE", stream.key(), from, "+", "COUNT", "1000"});
    if (reply->elements == 0) break;
    for (std::size_t i = 0; i < reply->elements; ++i) touch(*reply->element[i]);
    seen += reply->elements;
    const redisReply& last = *reply->element[reply->elements - 1]->element[0];
    from = fmt::format("({}", std::string_view{last.str, last.len});
  }
  meter.stop(state, seen);
}

void replay(benchmark::State& state, Link link, Size size) {
  const EventStream stream = filled_stream(link, size, replayed(size));
  std::size_t seen = 0;
  forget_the_peak();
  const double before = peak_megabytes();
  Meter meter;
  for (const Entry& entry : stream.replay_all()) {
    touch(entry);
    ++seen;
  }
  meter.stop(state, seen);
  state.counters["growth_mb"] = peak_megabytes() - before;
}

}  // namespace

void add_reading_benchmarks() {
  for (const Link link : {Link::kUnix, Link::kTcp}) {
    for (const Size size : {Size::kSmall, Size::kBig}) {
      const std::string of = std::string{"/"} + name_of(link) + "/" + name_of(size);
      add_benchmark("W3/hiredis_one_by_one" + of,
                    [=](auto& state) { consume_with_hiredis(state, link, size, true); });
      add_benchmark("W3/hiredis" + of,
                    [=](auto& state) { consume_with_hiredis(state, link, size, false); });
      add_benchmark("W3/consume" + of, [=](auto& state) { consume(state, link, size); });
      add_benchmark("W3/worker" + of,
                    [=](auto& state) { consume_with_a_worker(state, link, size, true); });
      add_benchmark("W4/hiredis" + of,
                    [=](auto& state) { take_over_with_hiredis(state, link, size); });
      add_benchmark("W4/autoclaim" + of, [=](auto& state) { take_over(state, link, size); });
      add_benchmark("W5/hiredis" + of,
                    [=](auto& state) { replay_with_hiredis(state, link, size); });
      add_benchmark("W5/replay_all" + of, [=](auto& state) { replay(state, link, size); });
    }
  }
}

}  // namespace millrace::bench
