# millrace_embed_scripts(<target> <folder>...)
#
# Gives <target> the header "millrace_scripts.hpp": for each <folder>/remove_consumer.lua a constant
# `millrace::detail::kRemoveConsumerScript` that holds the file's bytes and their SHA-1, by which
# the server knows the script. Where <folder> has a common.lua, that stands in front of each of the
# others. A new or changed file is noticed at the next build.
function(millrace_embed_scripts target)
  set(header "#pragma once\n\n#include \"protocol/script.hpp\"\n\nnamespace millrace::detail {\n")

  list(TRANSFORM ARGN APPEND "/*.lua" OUTPUT_VARIABLE patterns)
  file(GLOB scripts CONFIGURE_DEPENDS ${patterns})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${scripts})

  foreach(script IN LISTS scripts)
    cmake_path(GET script FILENAME filename)
    if(filename STREQUAL "common.lua")
      continue()
    endif()
    file(READ "${script}" source)
    cmake_path(REPLACE_FILENAME script common.lua OUTPUT_VARIABLE common)
    if(EXISTS "${common}")
      file(READ "${common}" before)
      string(PREPEND source "${before}\n")
    endif()
    string(FIND "${source}" ")lua\"" terminator)
    if(NOT terminator EQUAL -1)
      message(FATAL_ERROR "${script} contains the end mark of its raw string: )lua\"")
    endif()
    string(SHA1 sha1 "${source}")

    cmake_path(GET script STEM name)
    string(REGEX MATCHALL "[a-z0-9]+" words "${name}")
    set(constant k)
    foreach(word IN LISTS words)
      string(SUBSTRING "${word}" 0 1 initial)
      string(SUBSTRING "${word}" 1 -1 rest)
      string(TOUPPER "${initial}" initial)
      string(APPEND constant "${initial}${rest}")
    endforeach()

    string(APPEND header
      "\ninline constexpr Script ${constant}Script{R\"lua(${source})lua\",\n    \"${sha1}\"};\n")
  endforeach()
  string(APPEND header "\n}  // namespace millrace::detail\n")

  # Writes only what changed, and does not look for variables in the Lua.
  file(CONFIGURE OUTPUT millrace_scripts.hpp CONTENT "@header@" @ONLY)
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}")
endfunction()
