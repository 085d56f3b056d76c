#pragma once

#include <millrace/entry.hpp>

#include "core/byte_arena.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::detail {

enum class ReplyKind : std::uint8_t {
  kNil,
  kInteger,
  kString,  ///< Bulk, verbatim or big number.
  kStatus,
  kError,
  kArray,  ///< Also a RESP3 set; a RESP3 map counts 2n elements, as a RESP2 reply has them.
  kMap,
  kDouble,
  kBool,
  kPush,
  kEntries,  ///< A list of entries that has been read as such: Reply::take_entries() has them.
};

class ReplyView;

/// One reply, with its bytes. Move-only. A ReplyView lives until the reply moves or goes; the text
/// it gave stays valid wherever the bytes go, release_bytes() included. (That of a short one does
/// not: it goes where the reply goes.)
///
/// Built from the top: add() an aggregate before its elements. Elements are linked, not laid out in
/// advance, so memory follows the bytes that came and not the counts that were claimed.
class Reply {
 public:
  /// Names a node; 0 is none.
  using Handle = std::uint32_t;

  /// The most bytes of a short string: an id and more.
  static constexpr std::size_t kShortText = 48;

  /// Makes an empty reply one short string, or one integer, without an allocation.
  void become(std::string_view short_text) noexcept;
  void become(std::int64_t value) noexcept;

  Handle add_aggregate(ReplyKind kind, std::size_t elements, Handle parent);
  /// kString, kStatus, kError or kDouble, whose digits are its text. Copies `text`.
  Handle add_text(ReplyKind kind, std::string_view text, Handle parent);
  Handle add_integer(ReplyKind kind, std::int64_t value, Handle parent);  ///< kInteger or kBool.
  Handle add_nil(Handle parent);
  /// In place of an array of entries, which come by keep_entries(). One at most.
  Handle add_entries(Handle parent);
  void keep_entries(Handle list, EntryBatch entries);
  EntryBatch take_entries() && noexcept {
    return tree_ == nullptr ? EntryBatch{} : std::move(tree_->entries);
  }

  /// The server that it came from, as messages show it; null if it came from none. Shared with the
  /// connection, which may be gone when the reply is looked at.
  using Endpoint = std::shared_ptr<const std::string>;

  void came_from(Endpoint endpoint) noexcept { endpoint_ = std::move(endpoint); }
  const Endpoint& endpoint() const noexcept { return endpoint_; }

  bool empty() const noexcept { return !has_root_; }
  ReplyView root() const;

  /// Gives the bytes away; every string_view from this reply stays valid with them.
  ByteArena release_bytes() && noexcept {
    return tree_ == nullptr ? ByteArena{} : std::move(tree_->bytes);
  }

 private:
  friend class ReplyView;

  struct Node {
    ReplyKind kind = ReplyKind::kNil;
    bool is_short = false;  ///< Its text is the first `size` bytes of `short_text_`.
    Handle next = 0;        ///< The next element of the same aggregate.
    Handle first = 0;       ///< An aggregate's first element so far.
    Handle last = 0;        ///< And its last.
    std::size_t size = 0;   ///< Elements that were announced, or entries; bytes, if `is_short`.
    std::int64_t integer = 0;
    std::string_view text{};
  };

  /// What one that is no short text or integer needs besides. Apart, so that those move quickly.
  struct Tree {
    std::vector<Node> nodes{};  ///< Without the root.
    ByteArena bytes{};
    EntryBatch entries{};
  };

  Handle add(const Node& node, Handle parent);
  Tree& tree();
  Node& node(Handle handle) noexcept { return handle == 1 ? root_ : tree_->nodes[handle - 2]; }
  const Node& node(Handle handle) const noexcept {
    return handle == 1 ? root_ : tree_->nodes[handle - 2];
  }

  bool has_root_ = false;
  Node root_;
  std::unique_ptr<Tree> tree_;
  Endpoint endpoint_;
  std::array<char, kShortText> short_text_{};
};

/// A look at one node of a Reply. Total: what a node does not have is 0, empty or nil.
class ReplyView {
 public:
  ReplyView() = default;  ///< Nil.

  ReplyKind kind() const noexcept { return node().kind; }
  bool is_nil() const noexcept { return kind() == ReplyKind::kNil; }
  bool is_error() const noexcept { return kind() == ReplyKind::kError; }
  bool is_integer() const noexcept { return kind() == ReplyKind::kInteger; }
  bool is_text() const noexcept {
    return kind() == ReplyKind::kString || kind() == ReplyKind::kStatus;
  }
  /// An array, a set, a map or a push.
  bool is_aggregate() const noexcept {
    return kind() == ReplyKind::kArray || kind() == ReplyKind::kMap || kind() == ReplyKind::kPush;
  }

  std::string_view text() const noexcept {
    const Reply::Node& it = node();
    return it.is_short ? std::string_view{reply_->short_text_.data(), it.size} : it.text;
  }
  std::int64_t integer() const noexcept { return node().integer; }

  /// Of an aggregate or a list of entries.
  std::size_t size() const noexcept { return node().size; }

  /// Of the reply that this is a part of; empty if it came from no server.
  std::string_view endpoint() const noexcept {
    return reply_ != nullptr && reply_->endpoint_ ? std::string_view{*reply_->endpoint_}
                                                  : std::string_view{};
  }

  /// The element at `index`, counted from the first: for small replies. Nil beyond the end.
  ReplyView operator[](std::size_t index) const noexcept;

  class Iterator {
   public:
    ReplyView operator*() const noexcept { return ReplyView{*reply_, at_}; }
    Iterator& operator++() noexcept;
    bool operator==(const Iterator& other) const noexcept { return at_ == other.at_; }

   private:
    friend class ReplyView;
    Iterator(const Reply* reply, Reply::Handle at) noexcept : reply_{reply}, at_{at} {}
    const Reply* reply_;
    Reply::Handle at_;
  };

  Iterator begin() const noexcept { return {reply_, node().first}; }
  Iterator end() const noexcept { return {reply_, 0}; }

 private:
  friend class Reply;
  ReplyView(const Reply& reply, Reply::Handle handle) noexcept : reply_{&reply}, handle_{handle} {}
  const Reply::Node& node() const noexcept;

  const Reply* reply_ = nullptr;
  Reply::Handle handle_ = 0;
};

}  // namespace millrace::detail
