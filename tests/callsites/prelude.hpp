/// What a snippet of mistakes.cmake can name. Nothing of it is ever run. It is compiled by itself,
/// as a main file, where `#pragma once` would be a warning.

#include <millrace/consumer_worker.hpp>
#include <millrace/event_stream.hpp>
#include <millrace/producer.hpp>

#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace millrace;

extern const EventStream stream;
extern const EntryBatch batch;
extern const WorkerOptions options;
extern Producer producer;
