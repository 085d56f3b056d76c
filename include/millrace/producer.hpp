#pragma once

#include <millrace/event_stream.hpp>
#include <millrace/export.hpp>
#include <millrace/fields.hpp>
#include <millrace/histogram.hpp>
#include <millrace/stream_id.hpp>
#include <millrace/stream_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

namespace millrace {

namespace detail {
class ProducerCore;
}

/// How a Producer batches, how much it holds, and how long it tries. No time may be longer than ten
/// years.
struct ProducerOptions {
  std::size_t max_batch = 1'000;  ///< Entries that go out together at most; 1 to 100,000.
  /// Bytes that go out together at most, as they are sent; at least 1. A bigger entry goes alone.
  std::size_t max_batch_bytes = std::size_t{256} << 10;
  /// How long an entry may wait for others while nothing is under way; 0: it goes at once. What
  /// gathers while a batch is under way goes together in any case.
  std::chrono::milliseconds linger{0};
  std::size_t max_queued =
      100'000;  ///< Entries that were taken and have no answer yet; at least 1.
  std::size_t max_queued_bytes = std::size_t{64} << 20;  ///< The same in bytes; at least 1.
  /// How long send() waits for room when that much is queued, before it throws; 0: not at all.
  std::chrono::milliseconds send_timeout{5'000};
  /// How long an entry that cannot be appended (no connection, or a refusal that passes) is tried,
  /// from send() on, before the reason becomes its answer; more than 0. A connect that has begun
  /// is finished first.
  std::chrono::milliseconds delivery_timeout{30'000};
  /// How long the destructor goes on to send what is queued; 0: not at all.
  std::chrono::milliseconds close_timeout{5'000};
  std::chrono::milliseconds reconnect_min{100};    ///< First bound of the pauses; more than 0.
  std::chrono::milliseconds reconnect_max{5'000};  ///< Last one; at least `reconnect_min`.
};

/// What a Producer has done since it was made, and holds now.
struct ProducerStats {
  /// How many batches were how big.
  struct BatchSizes {
    std::vector<std::size_t> bounds{};    ///< 1, 2, 4, … entries.
    std::vector<std::uint64_t> counts{};  ///< For each, batches above the bound before it, and not
                                          ///< above this one; at the end, those above all.
  };

  std::uint64_t taken = 0;            ///< Entries that send() took.
  std::uint64_t appended = 0;         ///< Those that are in the stream.
  std::uint64_t failed = 0;           ///< Those that are not, for sure.
  std::uint64_t unknown = 0;          ///< Those whose reply was lost.
  std::uint64_t refused = 0;          ///< Calls of send() that found no room.
  std::uint64_t resent = 0;           ///< Times that an entry was to be sent again.
  std::uint64_t batches = 0;          ///< Batches sent.
  std::uint64_t reconnects = 0;       ///< Connections made after the first.
  std::uint64_t callback_throws = 0;  ///< Callbacks that threw; their exceptions are swallowed.
  std::size_t queued = 0;             ///< Entries that have no answer yet, now.
  std::size_t queued_bytes = 0;       ///< Their bytes.
  BatchSizes batch_sizes{};
  /// From send() to the answer, of entries that were appended. Bounds double from 100 µs to 105 s.
  Histogram latency{};
};

/// Appends without waiting: joins the entries of all threads into batches, and keeps two of them
/// under way on a connection of its own, outside the pool's bound. While a batch is under way, what
/// comes gathers for the next one.
///
/// **Each entry is answered once.** Either send() throws, and took nothing; or the entry gets one
/// answer, whatever happens, the destructor included: its id, or an Error. Of an error, outcome()
/// tells: kNotApplied, it is not in the stream; kUnknown, its reply was lost and it may be there.
/// Such an entry is never sent again. What was not sent whole when a connection broke, and what the
/// server refused for a reason that passes (Error::retryable(): LOADING, READONLY, OOM, MOVED, …),
/// is sent again, up to `delivery_timeout`. An error of one entry is nothing to its neighbours.
///
/// **Order.** Entries are appended, and answered, in the order in which send() took them, across
/// reconnects and refusals as well: a refused entry is sent again only while nothing that was sent
/// after it has been appended, or may have been; else the refusal is its answer. Of an entry with
/// outcome kUnknown nobody can say when the server appends it, if it does.
///
/// The stream's retention goes with the last entry of a batch, so the stream can be a batch longer.
///
/// **Callbacks** run on the producer's one thread, one at a time, with no lock held; nothing is
/// sent or read meanwhile, so be quick. What they throw is swallowed. They may call send(), which
/// does not wait there: if there is no room it throws at once. (The place of the entry that is
/// being answered is free by then.) flush() is refused there, and the Producer must not be
/// destroyed there.
///
/// All member functions may be called from any thread. After fork() a child gets UnsupportedError
/// from each, and cannot disturb its parent's producer; it makes one of its own.
///
///     Producer producer{orders};
///     producer.send({{"order", "17"}}, [](const AddResult& result) {
///       if (result.error) log(result.error->what());
///     });
///     const StreamId id = producer.send({{"order", "18"}}).get();
class MILLRACE_EXPORT Producer {
 public:
  /// Starts a thread; connects when there is something to send. Throws InvalidArgument, which names
  /// the option, the value and the rule; IoError or std::system_error if the process has no
  /// descriptor or thread left.
  explicit Producer(const EventStream& stream, const ProducerOptions& options = {});
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  /// Sends what is queued, for at most `close_timeout`; then ends the connection, and answers what
  /// is left: kNotApplied what was not sent, kUnknown what was. Waits for a callback that runs.
  ~Producer();

  /// Takes an entry, whose bytes are copied. The future has its id, or throws the error. Throws
  /// InvalidArgument for what can never be appended, TimeoutError if there was no room within
  /// `send_timeout`, and IoError if the Producer is being destroyed.
  std::future<StreamId> send(Fields fields);

  /// The same; `done` is called with the answer. An empty one is refused with InvalidArgument.
  void send(Fields fields, std::function<void(const AddResult&)> done);

  /// Waits until everything that was taken before has its answer, its callbacks having returned,
  /// and does not linger. False if that took longer than `timeout`. Throws InvalidArgument in a
  /// callback, where it would wait for itself.
  bool flush(std::chrono::milliseconds timeout);

  /// Numbers that each stand alone: an entry may be in one and not yet in another.
  ProducerStats stats() const;

 private:
  std::unique_ptr<detail::ProducerCore> core_;
};

}  // namespace millrace
