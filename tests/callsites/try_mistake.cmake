# cmake -D MISTAKE=<file> -D BECAUSE=<regex> -D WARNS=<bool> -P try_mistake.cmake
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

set(flags "")
if(NOT WARNS)
  set(flags -w)
endif()
execute_process(COMMAND ${compile} ${flags} -fsyntax-only "${MISTAKE}"
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)

if(WARNS)
  set(kind "warning")
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The mistake should warn, but does not compile:\n${output}")
  endif()
else()
  set(kind "error")
  if(result EQUAL 0)
    message(FATAL_ERROR "The mistake compiles.")
  endif()
endif()

if(NOT output MATCHES "${kind}: [^\n]*(${BECAUSE})")
  message(FATAL_ERROR "No ${kind} because of '${BECAUSE}':\n${output}")
endif()
