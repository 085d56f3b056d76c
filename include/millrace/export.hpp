#pragma once

/// Marks what the shared library offers; everything else stays hidden inside it.
#define MILLRACE_EXPORT __attribute__((visibility("default")))
