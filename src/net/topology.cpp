#include "net/topology.hpp"

#include "net/deadline.hpp"
#include "net/session.hpp"
#include "net/socket.hpp"
#include "net/wire_connection.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace millrace::detail {

Standalone::Standalone(ConnectionOptions options, const Clock& clock)
    : options_{std::move(options)}, endpoint_{endpoint_of(options_)}, clock_{&clock} {}

std::unique_ptr<Connection> Standalone::connect(std::string_view, TimePoint deadline,
                                                std::stop_token stop) {
  if (stop.stop_requested()) throw Interrupted{};
  const auto now = clock_->now();
  deadline = std::min(deadline, after(now, options_.connect_timeout));
  const auto credentials = credentials_of(options_);

  std::optional<Wakeup> wakeup;
  if (stop.stop_possible()) wakeup.emplace();
  const std::stop_callback wake{stop, [&wakeup] { wakeup->signal(); }};
  auto transport = connect_socket(options_, {.limit = left_until(deadline, now),
                                             .deadline = deadline,
                                             .stop = stop,
                                             .wakeup = wakeup ? &*wakeup : nullptr,
                                             .clock = *clock_});

  auto connection = std::make_unique<WireConnection>(std::move(transport), endpoint_,
                                                     options_.command_timeout, *clock_);
  set_up_session(*connection, options_, credentials, deadline, std::move(stop));
  return connection;
}

}  // namespace millrace::detail
