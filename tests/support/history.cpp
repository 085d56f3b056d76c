#include "support/history.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace millrace::test {
namespace {

constexpr std::string_view kEvents{"SEFPATLKB"};
constexpr const char* kNoLane = "-";

template <typename Number>
bool parse(const std::string& text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  return error == std::errc{} && at == end;
}

}  // namespace

Moment now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::chrono::seconds{time.tv_sec} + std::chrono::nanoseconds{time.tv_nsec};
}

std::string to_line(const Record& record) {
  std::ostringstream line;
  line << static_cast<char>(record.event) << ' ' << record.at.count() << ' ' << record.group << ' '
       << record.id << ' ' << record.attempt << ' ' << (record.reclaimed ? 1 : 0) << ' ';
  if (record.lane) {
    line << *record.lane;
  } else {
    line << kNoLane;
  }
  line << '\n';
  return line.str();
}

std::optional<Record> record_of(std::string_view line) {
  std::istringstream words{std::string{line}};
  std::string event, at, group, id, attempt, reclaimed, lane, rest;
  words >> event >> at >> group >> id >> attempt >> reclaimed >> lane;
  if (!words || words >> rest) return std::nullopt;

  Record record{.group = std::move(group)};
  Moment::rep nanoseconds = 0;
  int was_pending = 0;
  const auto parsed_id = StreamId::try_parse(id);
  if (event.size() != 1 || kEvents.find(event[0]) == std::string_view::npos || !parsed_id ||
      !parse(at, nanoseconds) || !parse(attempt, record.attempt) ||
      !parse(reclaimed, was_pending)) {
    return std::nullopt;
  }
  if (lane != kNoLane && !parse(lane, record.lane.emplace())) return std::nullopt;
  record.event = static_cast<Record::Event>(event[0]);
  record.at = Moment{nanoseconds};
  record.id = *parsed_id;
  record.reclaimed = was_pending != 0;
  return record;
}

HistoryWriter::HistoryWriter(const std::filesystem::path& file)
    : file_{::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {
  if (file_ < 0) throw std::system_error{errno, std::generic_category(), file.string()};
}

HistoryWriter::~HistoryWriter() { ::close(file_); }

void HistoryWriter::write(std::span<const Record> records) {
  std::string lines;
  for (const Record& record : records) lines += to_line(record);
  if (lines.empty()) return;
  if (::write(file_, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) {
    ::_exit(3);
  }
}

std::vector<Record> read_history(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  std::vector<Record> records;
  std::size_t at = 0;
  for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    const std::string line = text.substr(at, end - at);
    auto record = record_of(line);
    if (!record) throw std::runtime_error{file.string() + " has a line that is no record: " + line};
    records.push_back(std::move(*record));
    at = end + 1;
  }
  std::ranges::stable_sort(records, {}, &Record::at);
  return records;
}

}  // namespace millrace::test
