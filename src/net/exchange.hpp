#pragma once

#include <millrace/error.hpp>

#include "net/connection.hpp"
#include "net/reply_reader.hpp"
#include "net/transport.hpp"
#include "net/wakeup.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::detail {

/// What messages begin with: "XADD on 'orders' at 127.0.0.1:6379".
std::string subject(const CallSpec& spec, std::string_view endpoint);

/// A request on its way out and its replies on their way in, both at once: a peer whose replies
/// nobody reads stops reading itself, so writing everything first would never end.
class Exchange {
 public:
  /// What the exchange runs over.
  struct Stream {
    Transport& transport;
    ReplyReader& reader;
    std::span<char> buffer;  ///< What is received goes through it.
    const Wakeup* wakeup;    ///< Signalled when `stop` or `hang_up` is; may be null.
    const Clock& clock;
    const Reply::Endpoint& endpoint;
  };

  /// Ends at `CallSpec::deadline`, or after `limit` if there is none.
  Exchange(Stream stream, const CallSpec& spec, RequestBuffer& request, TakeReply take,
           Milliseconds limit) noexcept;

  /// Open-ended: see Connection::converse(). `request` is empty. `limit` is that of each piece.
  Exchange(Stream stream, const CallSpec& spec, RequestBuffer& request, WriteMore more,
           TakeReply take, Milliseconds limit) noexcept;

  /// Until every command has its reply, or no more can come. Throws Interrupted unless it is
  /// open-ended, and what `take` and `more` throw.
  PipelineResult run();

  /// True if everything was sent and answered, and nothing else came: the stream can be used again.
  bool is_clean() const noexcept {
    return is_done() && unsent_.empty() && !surplus_ && !hung_up_ && stream_.reader.is_drained();
  }

 private:
  using Failure = std::optional<Error>;

  /// What was written at once: its replies are due together.
  struct Piece {
    std::size_t end;  ///< Commands up to and with its last.
    TimePoint deadline;
  };

  Failure converse();
  Failure send();
  bool write_more();
  Failure wait();
  void heed_stops();
  Failure receive();
  Failure take_replies();
  Failure take_one(Reply&& reply);
  void read_last_words();

  std::size_t commands() const noexcept { return cleared_ + request_.commands(); }
  bool is_done() const noexcept { return replies_ == commands(); }
  TimePoint deadline() const noexcept {
    return pieces_.empty() ? deadline_ : pieces_.front().deadline;
  }
  ReplyShape shape_of_next() const noexcept;
  std::string about() const;
  std::size_t sent_whole() const noexcept;
  Outcome outcome() const noexcept;
  Error broken(const IoResult& io) const;
  Error timed_out() const;
  Error stopped() const;

  Stream stream_;
  const CallSpec& spec_;
  RequestBuffer& request_;
  std::optional<WriteMore> more_{};
  TakeReply take_;
  Milliseconds limit_;
  TimePoint deadline_;

  std::string_view unsent_;
  std::size_t cleared_ = 0;      ///< Commands that were sent, and whose bytes are gone.
  std::vector<Piece> pieces_{};  ///< Those with replies outstanding, if it is open-ended.
  std::size_t replies_ = 0;
  bool wants_to_write_ = false;
  bool more_to_read_ = false;  ///< The last receive filled the buffer.
  bool hung_up_ = false;       ///< The server has been told that this is the end.
  bool surplus_ = false;       ///< A reply came that no command had asked for.
};

}  // namespace millrace::detail
