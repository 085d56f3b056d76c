#include "journal.hpp"

#include <millrace/format.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace pipeline {

Journal::Journal(const std::string& path)
    : file_{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)} {
  if (file_ < 0) throw std::system_error{errno, std::generic_category(), path};
}

Journal::~Journal() { ::close(file_); }

void Journal::write(const Handled& handled) {
  const auto line =
      fmt::format("{} {} {}\n", handled.id, handled.checksum, handled.reclaimed ? 1 : 0);
  if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw std::system_error{errno, std::generic_category(), "the journal"};
  }
}

std::vector<Handled> Journal::read(const std::string& path) {
  std::vector<Handled> all;
  std::ifstream file{path};
  std::string id;
  Handled handled;
  int reclaimed = 0;
  while (file >> id >> handled.checksum >> reclaimed && file.get() == '\n') {
    handled.id = millrace::StreamId::parse(id);
    handled.reclaimed = reclaimed == 1;
    all.push_back(handled);
  }
  if (file.bad()) throw std::runtime_error{"cannot read " + path};
  return all;
}

}  // namespace pipeline
