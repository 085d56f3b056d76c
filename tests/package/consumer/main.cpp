// A user's program: appends one event to the server on the Unix socket argv[1], and reads it back.
#include <cstdio>
#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>
#include <millrace/version.hpp>

int main(int, char** argv) {
  const auto pool = millrace::ConnectionPool{{.unix_socket = argv[1]}};
  const auto orders = millrace::EventStream{pool, "orders"};

  const auto id = orders.produce("order.placed", {{"number", "4711"}});

  const auto entries = orders.replay();
  const bool read_back = entries.size() == 1 && entries[0].id() == id &&
                         entries[0].at("type") == "order.placed" &&
                         entries[0].at("number") == "4711";
  std::puts(
      fmt::format("millrace {}: {} {}", MILLRACE_VERSION, id, read_back ? "read back" : "lost")
          .c_str());
  return read_back ? 0 : 1;
}
