# millrace_add_tests(<name> [PUBLIC_API] [ON_EACH_SERVER] LABEL <label> SOURCES <file>...)
#
# One test program, and a ctest `<name>.<Suite>.<Fact>` for each of its tests. The target
# `<label>_tests` builds all programs of a label.
#
# A PUBLIC_API suite sees include/ alone, as a user does. The others see src/ and call what a shared
# library hides, so they exist in static builds only.
#
# An ON_EACH_SERVER suite gets tests/support's server as well. If MILLRACE_SERVERS names a folder, it
# has a ctest `<name>.<server>.<Suite>.<Fact>` for each server there, in place of the default one.
function(millrace_add_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PUBLIC_API;ON_EACH_SERVER" "LABEL" "SOURCES")
  if(NOT arg_SOURCES OR (BUILD_SHARED_LIBS AND NOT arg_PUBLIC_API))
    return()
  endif()

  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE
    millrace::millrace
    millrace_test_support
    millrace_warnings
    GTest::gmock
    GTest::gtest_main)
  if(NOT arg_PUBLIC_API)
    target_link_libraries(${name} PRIVATE millrace_internals)
  endif()
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
  if(NOT TARGET ${arg_LABEL}_tests)
    add_custom_target(${arg_LABEL}_tests)
  endif()
  add_dependencies(${arg_LABEL}_tests ${name})

  if(arg_ON_EACH_SERVER)
    target_link_libraries(${name} PRIVATE millrace_test_server)
    if(MILLRACE_SERVERS)
      millrace_discover_on_each_server(${name} "${arg_LABEL}")
      return()
    endif()
  endif()

  set(needs_server "")
  if(NOT arg_LABEL STREQUAL unit)
    set(needs_server FIXTURES_REQUIRED server)
  endif()
  gtest_discover_tests(${name}
    TEST_PREFIX "${name}."
    NO_PRETTY_VALUES
    DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABEL}" TIMEOUT 120 ${needs_server})
endfunction()

# Folders `redis-7.0`, `valkey-9.1` and so on, each with its redis-server or valkey-server.
set(MILLRACE_SERVERS "" CACHE PATH
  "Folder of servers, each of which the tests are run against; empty: redis-server alone")
if(DEFINED ENV{MILLRACE_SERVERS})
  set(MILLRACE_SERVERS "$ENV{MILLRACE_SERVERS}")
endif()

function(millrace_discover_on_each_server name label)
  file(GLOB programs "${MILLRACE_SERVERS}/*/redis-server" "${MILLRACE_SERVERS}/*/valkey-server")
  if(NOT programs)
    message(FATAL_ERROR "MILLRACE_SERVERS has no server: ${MILLRACE_SERVERS}")
  endif()
  foreach(program IN LISTS programs)
    cmake_path(GET program PARENT_PATH folder)
    cmake_path(GET folder FILENAME server)
    gtest_discover_tests(${name}
      TEST_PREFIX "${name}.${server}."
      TEST_LIST "${name}_${server}_TESTS"
      NO_PRETTY_VALUES
      DISCOVERY_TIMEOUT 60
      PROPERTIES
        LABELS "${label}"
        TIMEOUT 120
        ENVIRONMENT "MILLRACE_TEST_SERVER=${program}")
  endforeach()
endfunction()

# What src/ offers to its own tests.
add_library(millrace_internals INTERFACE)
target_include_directories(millrace_internals INTERFACE
  "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_BINARY_DIR}/src")
target_link_libraries(millrace_internals INTERFACE Hiredis::hiredis)

# One clear failure, instead of one in each test, where there is no server to test against.
add_test(NAME server_is_present
  COMMAND sh -c "exec \"\${MILLRACE_TEST_SERVER:-redis-server}\" --version")
set_tests_properties(server_is_present PROPERTIES FIXTURES_SETUP server)
