#pragma once

/// Formatters for fmt. The only public header that includes fmt.

#include <millrace/stream_id.hpp>

#include <fmt/format.h>

/// `{}` gives `ms-seq`.
template <>
struct fmt::formatter<millrace::StreamId> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }

  template <typename Context>
  auto format(const millrace::StreamId& id, Context& context) const {
    return fmt::format_to(context.out(), "{}-{}", id.ms, id.seq);
  }
};
