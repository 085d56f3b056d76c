#pragma once

#include <millrace/stream_id.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace pipeline {

/// What a handler did with one entry.
struct Handled {
  millrace::StreamId id{};
  std::uint64_t checksum = 0;  ///< Of the fields, as the handler got them.
  bool reclaimed = false;

  friend bool operator==(const Handled&, const Handled&) = default;
};

/// A file in which a worker process writes what it has handled, before that is acknowledged. It is
/// handed to the system line by line, so it is all there when the process is killed.
class Journal {
 public:
  explicit Journal(const std::string& path);
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  ~Journal();

  void write(const Handled& handled);

  /// A last line that was cut short is left out: what it was about is not acknowledged either.
  static std::vector<Handled> read(const std::string& path);

 private:
  int file_;
};

}  // namespace pipeline
