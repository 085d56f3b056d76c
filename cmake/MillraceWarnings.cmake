# What millrace's own targets are compiled with. Linked privately, so that no user inherits it.
add_library(millrace_warnings INTERFACE)
target_compile_options(millrace_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${MILLRACE_WERROR}>:-Werror>)
