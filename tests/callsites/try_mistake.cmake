# cmake -D MISTAKE=<file> -D INSTEAD=<file> -D BECAUSE=<regex> -D WARNS=<bool> -P try_mistake.cmake
#       -- <compiler> <flag>...
#
# See callsites_mistake.

math(EXPR last "${CMAKE_ARGC} - 1")
set(compile "")
foreach(i RANGE ${last})
  if(own_arguments_ended)
    list(APPEND compile "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(own_arguments_ended TRUE)
  endif()
endforeach()

set(ENV{LC_ALL} C) # the diagnostics are matched in English

# try(<file> <flag>...): sets `result` and `output`.
macro(try file)
  execute_process(COMMAND ${compile} ${ARGN} -fsyntax-only "${file}"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
endmacro()

try("${INSTEAD}" -Werror)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "What to write instead does not compile:\n${output}")
endif()

if(WARNS)
  try("${MISTAKE}")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The mistake should warn, but does not compile:\n${output}")
  endif()
  set(kind "warning")
else()
  try("${MISTAKE}" -w)
  if(result EQUAL 0)
    message(FATAL_ERROR "The mistake compiles.")
  endif()
  set(kind "error")
endif()

if(NOT output MATCHES "${kind}: [^\n]*(${BECAUSE})")
  message(FATAL_ERROR "No ${kind} because of '${BECAUSE}':\n${output}")
endif()
