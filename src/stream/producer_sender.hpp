#pragma once

#include <millrace/error.hpp>
#include <millrace/producer.hpp>

#include "core/backoff.hpp"
#include "core/clock.hpp"
#include "net/connection.hpp"
#include "net/wakeup.hpp"
#include "protocol/commands.hpp"
#include "stream/producer_entries.hpp"
#include "stream/producer_queue.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace millrace::detail {

/// The one thread of a producer: takes blocks from the queue, keeps two batches under way, and
/// answers each entry once, in the order in which they were taken.
///
/// Invariant: `outgoing_` are the entries that were taken from the queue and have no answer, in
/// order; ProducerBlock says how far each block is, and those before another are at least as far.
/// What is answered is first replied to, or given up; what is written and not replied to is under
/// way on `connection_`, and nothing is when round() begins or ends.
///
/// A refused entry is held (replied to, not answered) while everything after it was refused as
/// well: then all of them are sent again, in order. An answer to a later entry is preceded by
/// theirs.
class ProducerSender {
 public:
  /// A connection to the stream's server. Throws what Pool::connect() does.
  using Connect = std::function<std::unique_ptr<Connection>(std::stop_token)>;

  struct Surroundings {
    const std::string& key;
    const std::optional<Trim>& retention;
    const ProducerOptions& options;
    ProducerQueue& queue;
    ProducerCounters& counters;
    const Wakeup& wakeup;  ///< The queue's.
    const Clock& clock;
  };

  ProducerSender(const Surroundings& around, Connect connect);

  /// Until the queue is closed and all is answered, or until `stop`; what is left then is answered
  /// with the reason.
  void run(std::stop_token stop);

  /// In a callback: publishes the places that are free by now.
  void publish() { around_.queue.settle(settled_); }

 private:
  void round();
  bool take_block();
  void answer_overdue();
  bool connect();
  bool has_connection();
  PipelineResult converse();
  void write_more(RequestBuffer& request);
  void write(ProducerBlock& block, RequestBuffer& request);
  void take_reply(const Reply& reply);
  AddResult result_of(const Reply& reply) const;
  void conclude(const PipelineResult& result);
  void break_off(const PipelineResult& result);
  void send_refused_again();
  void rewind();
  void pause();
  void give_up();

  void answer_held(std::size_t count);
  void answer_next(const AddResult& result);
  void count(const AddResult& result, TimePoint since);
  Error reason() const;

  ProducerBlock* unwritten() noexcept;
  std::size_t outstanding() const noexcept;
  std::size_t held() const noexcept;

  const Surroundings around_;
  const Connect connect_;
  std::stop_token stop_{};
  std::unique_ptr<Connection> connection_{};
  Backoff backoff_;

  std::list<ProducerBlock> outgoing_;
  ProducerQueue::Settled settled_;
  std::vector<std::size_t> batches_;  ///< Of those under way, how many replies are outstanding.
  commands::AddTerms terms_{};        ///< Those of a batch's last command.
  /// Why entries are held. While there are any, nothing more is sent.
  std::optional<Error> refusal_{};
  /// Why nothing could be appended since the last time that something was.
  std::optional<Error> trouble_{};
  /// The next entry goes alone, to see whether the server takes any: after a connect or a refusal.
  bool probing_ = true;
  bool was_of_use_ = false;  ///< The connection: something was appended on it.
};

}  // namespace millrace::detail
