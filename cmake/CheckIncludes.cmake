# cmake -D ROOT=<source tree> -P CheckIncludes.cmake: who may include whom.
#
#   1. Arrows run one way, worker -> stream -> net -> protocol -> core: a file in src/ includes its
#      own folder and those to the right of it, by their paths from src/.
#   2. include/ knows nothing of src/.
#   3. hiredis is included by files in src/net/ only.
#   4. Of the public headers, only millrace/format.hpp includes fmt, and none includes that one.

cmake_minimum_required(VERSION 3.25)

set(allowed_from_core core)
set(allowed_from_protocol protocol ${allowed_from_core})
set(allowed_from_net net ${allowed_from_protocol})
set(allowed_from_stream stream ${allowed_from_net})
set(allowed_from_worker worker ${allowed_from_stream})

# check(<violation> <file> <include>): what is wrong with that line, or nothing.
function(check violation file include)
  set(${violation} "" PARENT_SCOPE)
  if(include MATCHES "hiredis" AND NOT file MATCHES "^src/net/")
    set(${violation} "only src/net/ includes hiredis" PARENT_SCOPE)
  endif()

  if(file MATCHES "^include/")
    if(include MATCHES "^fmt/|^millrace/format\\.hpp$" AND NOT file MATCHES "/format\\.hpp$")
      set(${violation} "only millrace/format.hpp brings fmt to users" PARENT_SCOPE)
    elseif(include MATCHES "\\.hpp$" AND NOT include MATCHES "^millrace/[a-z_/]+\\.hpp$")
      set(${violation} "a public header includes public headers only" PARENT_SCOPE)
    endif()
  elseif(include MATCHES "\\.hpp$" AND NOT include MATCHES "^(millrace/.*|millrace_scripts)\\.hpp$")
    string(REGEX REPLACE "^src/([a-z]+)/.*" "\\1" from "${file}")
    string(REGEX REPLACE "^([a-z]+)/.*" "\\1" to "${include}")
    if(NOT to IN_LIST allowed_from_${from})
      list(JOIN allowed_from_${from} ", " allowed)
      set(${violation} "src/${from}/ includes only ${allowed}, by paths from src/" PARENT_SCOPE)
    endif()
  endif()
endfunction()

file(GLOB_RECURSE files RELATIVE "${ROOT}"
  "${ROOT}/include/*.hpp" "${ROOT}/src/*.hpp" "${ROOT}/src/*.cpp")
if(NOT files)
  message(FATAL_ERROR "There is no source under '${ROOT}'.")
endif()

set(violations "")
foreach(file IN LISTS files)
  file(STRINGS "${ROOT}/${file}" lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "[<\"]([^>\"]+)[>\"]" _ "${line}")
    check(violation "${file}" "${CMAKE_MATCH_1}")
    if(violation)
      string(APPEND violations "\n  ${file}: ${line}: ${violation}")
    endif()
  endforeach()
endforeach()

if(violations)
  message(FATAL_ERROR "Includes that break the house rules:${violations}")
endif()
