#include "worker.hpp"

#include <millrace/consumer_worker.hpp>
#include <millrace/event_stream.hpp>

#include <sys/prctl.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <stdexcept>

#include "checksum.hpp"
#include "journal.hpp"

namespace pipeline {

using namespace millrace;
using namespace std::chrono_literals;

int run_worker(const Options& options) {
  // Signals are waited for, below; blocked before there are threads, they come to none of these.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // no worker outlives the program that has started it

  Journal journal{options.worker_journal};
  const auto record = [&journal](const Delivery& delivery) {
    journal.write({.id = delivery.entry.id(),
                   .checksum = checksum(delivery.entry),
                   .reclaimed = delivery.reclaimed});
  };

  const EventStream stream{ConnectionPool{ConnectionOptions::from_uri(options.uri)},
                           options.stream};
  ConsumerWorker worker{stream,
                        {.group = options.worker_group,
                         .consumer = options.worker_consumer,
                         .group_start = GroupStart::beginning(),
                         .min_idle = 2s,
                         .reap_every = 500ms},
                        record};
  worker.start();
  if (!worker.wait_ready(30s)) {
    if (const auto failure = worker.failure()) failure->raise();
    throw std::runtime_error{"the worker does not get ready"};
  }
  std::ofstream{ready_mark(options.worker_journal)};

  int signal = 0;
  sigwait(&signals, &signal);
  worker.stop();
  if (const auto failure = worker.failure()) failure->raise();
  return 0;
}

}  // namespace pipeline
