#include "worker/inside.hpp"

namespace millrace::detail {
namespace {

thread_local const Inside* innermost = nullptr;

}  // namespace

Inside::Inside(const Worker& worker) noexcept : worker_{worker}, outer_{innermost} {
  innermost = this;
}

Inside::~Inside() { innermost = outer_; }

bool Inside::of(const Worker& worker) noexcept {
  for (const Inside* inside = innermost; inside != nullptr; inside = inside->outer_) {
    if (&inside->worker_ == &worker) return true;
  }
  return false;
}

}  // namespace millrace::detail
