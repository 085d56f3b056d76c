#pragma once

#include "net/connection.hpp"
#include "net/exchange.hpp"
#include "net/process.hpp"
#include "net/reply_reader.hpp"
#include "net/transport.hpp"
#include "net/wakeup.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::detail {

/// A Connection over a byte transport: writes requests and reads replies at the same time, under
/// one absolute deadline a call.
class WireConnection final : public Connection {
 public:
  /// `transport` is connected; nothing has been said on it.
  WireConnection(std::unique_ptr<Transport> transport, std::string endpoint,
                 Milliseconds command_timeout, const Clock& clock);

  Reply call(const CallSpec& spec, WriteRequest write) override;
  PipelineResult pipeline(const CallSpec& spec, WriteRequest write, TakeReply take) override;
  PipelineResult converse(const CallSpec& spec, WriteMore more, TakeReply take,
                          const Wakeup& wakeup) override;

  bool is_open() const noexcept override { return open_; }
  bool is_quiet() noexcept override { return open_ && transport_->is_quiet(); }
  std::uint64_t client_id() const noexcept override { return client_id_; }
  std::string_view endpoint() const noexcept override { return *endpoint_; }

  void set_client_id(std::uint64_t id) noexcept { client_id_ = id; }

 private:
  struct ClearAfterUse {
    ~ClearAfterUse() { request.clear(); }
    RequestBuffer& request;
  };

  struct CloseUnlessClean {
    ~CloseUnlessClean() {
      if (!exchange.is_clean()) connection.close();
    }
    WireConnection& connection;
    const Exchange& exchange;
  };

  PipelineResult exchange(const CallSpec& spec, WriteRequest write, TakeReply take);
  Error closed_error(const CallSpec& spec) const;
  Exchange::Stream stream(const Wakeup* wakeup);
  void arm_wakeup();
  void close() noexcept;

  std::unique_ptr<Transport> transport_;
  Reply::Endpoint endpoint_;  ///< Never null.
  Milliseconds command_timeout_;
  const Clock* clock_;
  HomeProcess made_in_;
  bool open_ = true;
  std::uint64_t client_id_ = 0;

  RequestBuffer request_;
  ReplyReader reader_;
  std::unique_ptr<char[]> received_;
  std::optional<Wakeup> wakeup_;  ///< Made for the first call that can be stopped.
};

}  // namespace millrace::detail
