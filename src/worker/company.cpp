#include "worker/company.hpp"

namespace millrace::detail {
namespace {

thread_local int passes_of_this_thread = 0;

}  // namespace

Company& Company::of_process() {
  static Company company;
  return company;
}

Company::Pass::Pass(Company& company, Wish wish)
    : company_{company},
      is_nested_{passes_of_this_thread > 0},
      is_inside_{is_nested_ ? wish == Wish::kAny : company.enter(wish)},
      wish_{wish} {
  if (is_inside_) ++passes_of_this_thread;
}

Company::Pass::~Pass() {
  if (!is_inside_) return;
  --passes_of_this_thread;
  if (!is_nested_) company_.leave(wish_);
}

bool Company::enter(Pass::Wish wish) {
  std::unique_lock lock{mutex_};
  if (wish == Pass::Wish::kAny) {
    changed_.wait(lock, [this, before = waits_in_vain_] {
      return !alone_ && (want_to_be_alone_ == 0 || waits_in_vain_ != before);
    });
    ++inside_;
    return true;
  }
  ++want_to_be_alone_;
  const bool is_alone =
      changed_.wait_for(lock, patience_, [this] { return !alone_ && inside_ == 0; });
  --want_to_be_alone_;
  if (is_alone) {
    alone_ = true;
  } else {
    ++waits_in_vain_;
  }
  changed_.notify_all();
  return is_alone;
}

void Company::leave(Pass::Wish wish) {
  std::lock_guard lock{mutex_};
  if (wish == Pass::Wish::kAlone) {
    alone_ = false;
  } else {
    --inside_;
  }
  changed_.notify_all();
}

}  // namespace millrace::detail
