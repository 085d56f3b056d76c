#include "protocol/reply.hpp"

#include <utility>

namespace millrace::detail {

Reply::Handle Reply::add(Node node, Handle parent) {
  nodes_.push_back(node);
  const auto handle = static_cast<Handle>(nodes_.size());
  if (parent != 0) {
    Node& aggregate = nodes_[parent - 1];
    (aggregate.last == 0 ? aggregate.first : nodes_[aggregate.last - 1].next) = handle;
    aggregate.last = handle;
  }
  return handle;
}

Reply::Handle Reply::add_aggregate(ReplyKind kind, std::size_t elements, Handle parent) {
  return add({.kind = kind, .size = elements}, parent);
}

Reply::Handle Reply::add_text(ReplyKind kind, std::string_view text, Handle parent) {
  return add({.kind = kind, .text = bytes_.store(text)}, parent);
}

Reply::Handle Reply::add_integer(ReplyKind kind, std::int64_t value, Handle parent) {
  return add({.kind = kind, .integer = value}, parent);
}

Reply::Handle Reply::add_nil(Handle parent) { return add({}, parent); }

ReplyView Reply::root() const { return nodes_.empty() ? ReplyView{} : ReplyView{*this, 1}; }

const Reply::Node& ReplyView::node() const noexcept {
  static const Reply::Node kNothing;
  return handle_ == 0 ? kNothing : reply_->nodes_[handle_ - 1];
}

ReplyView ReplyView::operator[](std::size_t index) const noexcept {
  auto at = begin();
  while (index > 0 && at != end()) {
    ++at;
    --index;
  }
  return at == end() ? ReplyView{} : *at;
}

ReplyView::Iterator& ReplyView::Iterator::operator++() noexcept {
  at_ = reply_->nodes_[at_ - 1].next;
  return *this;
}

}  // namespace millrace::detail
