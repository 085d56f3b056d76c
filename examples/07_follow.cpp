// Following a stream as it grows, as `tail -f` does: every reader sees every entry.

#include <millrace/event_stream.hpp>
#include <millrace/format.hpp>

#include <chrono>
#include <cstdio>
#include <exception>
#include <stop_token>
#include <string>
#include <thread>

#include "server_uri.hpp"

using namespace millrace;
using namespace std::chrono_literals;

int main(int argc, char** argv) try {
  const ConnectionPool pool{ConnectionOptions::from_uri(server_uri(argc, argv))};
  const EventStream news{pool, "example:follow"};
  news.delete_stream();
  news.add({{"headline", "old news, from before"}});

  // From now on means from this line on: what is appended between two reads is not missed.
  Follower follower = news.follow(FollowStart::now());

  const std::jthread writer{[news] {
    for (int i = 1; i <= 3; ++i) {
      std::this_thread::sleep_for(100ms);
      news.add({{"headline", "news " + std::to_string(i)}});
    }
  }};

  std::size_t seen = 0;
  while (seen < 3) {
    const auto batch = follower.next(5s);
    if (batch.empty()) return 1;  // nothing for 5 seconds
    for (const auto& entry : batch) fmt::print("{}: {}\n", entry.id(), entry.at("headline"));
    seen += batch.size();
  }

  // A stop token ends a wait at once; where the reader was is a place to go on from.
  std::stop_source stop;
  const std::jthread stopper{[&stop] {
    std::this_thread::sleep_for(100ms);
    stop.request_stop();
  }};
  const auto start = std::chrono::steady_clock::now();
  const auto nothing = follower.next(1min, stop.get_token());
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
  fmt::print("stopped after {:.1f} s; go on after {}\n", waited.count(), follower.position());
  return nothing.empty() && waited < 30s ? 0 : 1;
} catch (const std::exception& error) {
  fmt::print(stderr, "07_follow: {}\n", error.what());
  return 1;
}
