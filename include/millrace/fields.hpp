#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace millrace {

/// A field of an entry: name and value, both bytes. Order is kept and names may repeat, so an
/// entry is a list of these, never a map.
using Field = std::pair<std::string_view, std::string_view>;

/// Fields that own their bytes.
using OwnedFields = std::vector<std::pair<std::string, std::string>>;

namespace detail {

/// What can be seen as bytes without a copy. A null pointer cannot.
template <typename T>
concept StringLike = std::convertible_to<const T&, std::string_view> &&
    !std::same_as<std::remove_cvref_t<T>, std::nullptr_t>;

template <typename T>
concept FieldLike = requires(const T& field) {
  requires StringLike<std::remove_cvref_t<decltype(field.first)>>;
  requires StringLike<std::remove_cvref_t<decltype(field.second)>>;
};

template <typename R>
concept FieldRange = std::ranges::forward_range<const R> &&
    FieldLike<std::remove_cvref_t<std::ranges::range_reference_t<const R>>>;

}  // namespace detail

/// The fields of an entry to be appended: an argument only, which refers to the caller's bytes and
/// therefore can be neither copied nor moved, nor kept.
///
///     stream.add({{"order", "17"}, {"total", "9.90"}});   // a list
///     stream.add(std::map<std::string, std::string>{…});  // any forward range of pairs
///     stream.add(batch[0]);                               // an Entry
///
/// Names and values are binary safe and may be empty.
class Fields {
 public:
  /// One element of a list. A class of its own, so that `{"a", "b"}` can only be a name and a
  /// value, never one string made of two pointers.
  class Element {
   public:
    template <detail::StringLike Name, detail::StringLike Value>
    Element(const Name& name, const Value& value)  // NOLINT(google-explicit-constructor)
        : field_{name, value} {}

    template <detail::StringLike Name, detail::StringLike Value>
    Element(const std::pair<Name, Value>& field)  // NOLINT(google-explicit-constructor)
        : field_{field.first, field.second} {}

   private:
    friend class Fields;
    Field field_;
  };

  // NOLINTNEXTLINE(google-explicit-constructor)
  Fields(std::initializer_list<Element> elements)
      : source_{elements.begin()}, size_{elements.size()}, visit_{&visit_elements} {}

  template <detail::FieldRange Range>
  requires(!std::same_as<Range, Fields>)
      Fields(const Range& range)  // NOLINT(google-explicit-constructor)
      : source_{&range},
        size_{static_cast<std::size_t>(std::ranges::distance(range))},
        visit_{&visit_range<Range>} {}

  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;
  ~Fields() = default;

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }

  /// Calls `visit(Field)` for each field in order.
  template <typename Visitor>
  void for_each(Visitor&& visit) const {
    using Plain = std::remove_reference_t<Visitor>;
    visit_(
        source_, size_,
        [](void* context, const Field& field) { (*static_cast<Plain*>(context))(field); },
        const_cast<void*>(static_cast<const void*>(&visit)));
  }

 private:
  using Sink = void (*)(void* context, const Field& field);

  static void visit_elements(const void* source, std::size_t size, Sink sink, void* context) {
    const auto* elements = static_cast<const Element*>(source);
    for (std::size_t i = 0; i < size; ++i) sink(context, elements[i].field_);
  }

  template <typename Range>
  static void visit_range(const void* source, std::size_t /*size*/, Sink sink, void* context) {
    for (const auto& field : *static_cast<const Range*>(source)) {
      sink(context, Field{field.first, field.second});
    }
  }

  const void* source_;
  std::size_t size_;
  void (*visit_)(const void*, std::size_t, Sink, void*);
};

}  // namespace millrace
