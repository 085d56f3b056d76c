#pragma once

#include <malloc.h>

#include <cstddef>

namespace millrace::detail {

/// What the heap has taken from the system in big pieces.
inline std::size_t mapped_memory() { return ::mallinfo2().hblkhd; }

}  // namespace millrace::detail
