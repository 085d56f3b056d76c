#include "protocol/reply.hpp"

#include <algorithm>
#include <cassert>

namespace millrace::detail {

void Reply::become(std::string_view short_text) noexcept {
  assert(empty() && short_text.size() <= kShortText);
  has_root_ = true;
  root_.kind = ReplyKind::kString;
  root_.is_short = true;
  root_.size = std::min(short_text.size(), kShortText);
  std::copy_n(short_text.data(), root_.size, short_text_.data());
}

void Reply::become(std::int64_t value) noexcept {
  assert(empty());
  has_root_ = true;
  root_.kind = ReplyKind::kInteger;
  root_.integer = value;
}

/// The first one is the root, which needs no memory.
Reply::Handle Reply::add(const Node& node_given, Handle parent) {
  if (!has_root_) {
    has_root_ = true;
    root_ = node_given;
    return 1;
  }
  auto& nodes = tree().nodes;
  nodes.push_back(node_given);
  const auto handle = static_cast<Handle>(nodes.size() + 1);
  if (parent != 0) {
    Node& aggregate = node(parent);
    (aggregate.last == 0 ? aggregate.first : node(aggregate.last).next) = handle;
    aggregate.last = handle;
  }
  return handle;
}

Reply::Tree& Reply::tree() {
  if (tree_ == nullptr) tree_ = std::make_unique<Tree>();
  return *tree_;
}

Reply::Handle Reply::add_aggregate(ReplyKind kind, std::size_t elements, Handle parent) {
  return add({.kind = kind, .size = elements}, parent);
}

Reply::Handle Reply::add_text(ReplyKind kind, std::string_view text, Handle parent) {
  return add({.kind = kind, .text = tree().bytes.store(text)}, parent);
}

Reply::Handle Reply::add_integer(ReplyKind kind, std::int64_t value, Handle parent) {
  return add({.kind = kind, .integer = value}, parent);
}

Reply::Handle Reply::add_nil(Handle parent) { return add({}, parent); }

Reply::Handle Reply::add_entries(Handle parent) {
  return add({.kind = ReplyKind::kEntries}, parent);
}

void Reply::keep_entries(Handle list, EntryBatch entries) {
  node(list).size = entries.size();
  tree().entries = std::move(entries);
}

ReplyView Reply::root() const { return has_root_ ? ReplyView{*this, 1} : ReplyView{}; }

const Reply::Node& ReplyView::node() const noexcept {
  static const Reply::Node kNothing;
  return handle_ == 0 ? kNothing : reply_->node(handle_);
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
  at_ = reply_->node(at_).next;
  return *this;
}

}  // namespace millrace::detail
