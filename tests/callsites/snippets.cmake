# How a snippet becomes tests: one for each compiler, which runs it over what was written.

set(callsites_compilers "")
set(callsites_flags
  -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  "-I$<JOIN:$<TARGET_PROPERTY:callsites,INCLUDE_DIRECTORIES>,$<SEMICOLON>-I>")

# callsites_add_compiler(<name> <id> <program>...): the one that builds millrace if that has this
# id, or the first of the programs that is installed.
function(callsites_add_compiler name id)
  if(CMAKE_CXX_COMPILER_ID STREQUAL id)
    set(callsites_${name} "${CMAKE_CXX_COMPILER}")
  else()
    find_program(callsites_${name} NAMES ${ARGN})
    mark_as_advanced(callsites_${name})
    if(NOT callsites_${name})
      # Skipped under a name, so that it is counted.
      add_test(NAME callsites.${name}.is_not_installed
        COMMAND sh -c "echo 'skipped: none of ${ARGN} is installed'; exit 77")
      set_tests_properties(callsites.${name}.is_not_installed PROPERTIES
        LABELS callsites
        SKIP_RETURN_CODE 77)
      return()
    endif()
  endif()
  set(callsites_${name} "${callsites_${name}}" PARENT_SCOPE)
  set(callsites_compilers ${callsites_compilers} ${name} PARENT_SCOPE)

  # What all snippets include is read once.
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${name}")
  file(MAKE_DIRECTORY "${folder}")
  if(id STREQUAL GNU)
    set(compiled_prelude "${folder}/prelude.hpp.gch")
    set(use_prelude -I "${folder}" -include prelude.hpp)
  else()
    set(compiled_prelude "${folder}/prelude.pch")
    set(use_prelude -include-pch "${compiled_prelude}")
  endif()
  set(callsites_use_prelude_${name} ${use_prelude} PARENT_SCOPE)

  add_test(NAME callsites.${name}.prelude
    COMMAND "${callsites_${name}}" ${callsites_flags} -Werror -x c++-header
      "${CMAKE_CURRENT_SOURCE_DIR}/prelude.hpp" -o "${compiled_prelude}"
    COMMAND_EXPAND_LISTS)
  set_tests_properties(callsites.${name}.prelude PROPERTIES
    LABELS callsites
    FIXTURES_SETUP callsites_prelude_${name})
endfunction()

# callsites_compile_without_a_warning(<file>...): under the other compilers. The one that builds
# millrace has them in a target, which is stricter: some warnings come with code generation only.
function(callsites_compile_without_a_warning)
  list(TRANSFORM ARGN PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" OUTPUT_VARIABLE files)
  foreach(compiler IN LISTS callsites_compilers)
    if(callsites_${compiler} STREQUAL CMAKE_CXX_COMPILER)
      continue()
    endif()
    add_test(NAME callsites.${compiler}.compile_without_a_warning
      COMMAND "${callsites_${compiler}}" ${callsites_flags} -Werror -fsyntax-only ${files}
      COMMAND_EXPAND_LISTS)
    set_tests_properties(callsites.${compiler}.compile_without_a_warning PROPERTIES
      LABELS callsites
      TIMEOUT 300)
  endforeach()
endfunction()

# callsites_mistake(<name> MISTAKE <code> INSTEAD <code> BECAUSE <regex> [WARNS])
#
# MISTAKE does not compile (WARNS: compiles with a warning), for a reason that matches BECAUSE.
# INSTEAD, which should differ in the mistake alone, compiles without a warning: all of them are one
# test, callsites.<compiler>.instead.
function(callsites_mistake name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "WARNS" "MISTAKE;INSTEAD;BECAUSE" "")
  set(mistake "${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp")
  file(CONFIGURE OUTPUT "${mistake}" @ONLY CONTENT
    "void snippet() {\n#line 1 \"${name}\"\n@arg_MISTAKE@\n}\n")
  string(MAKE_C_IDENTIFIER "${name}" function)
  set_property(DIRECTORY APPEND_STRING PROPERTY callsites_instead
    "void ${function}() {\n#line 1 \"${name}\"\n${arg_INSTEAD}\n}\n")

  foreach(compiler IN LISTS callsites_compilers)
    add_test(NAME callsites.${compiler}.${name}
      COMMAND "${CMAKE_COMMAND}"
        -D "MISTAKE=${mistake}"
        -D "BECAUSE=${arg_BECAUSE}"
        -D "WARNS=${arg_WARNS}"
        -P "${CMAKE_CURRENT_LIST_DIR}/try_mistake.cmake"
        -- "${callsites_${compiler}}" ${callsites_use_prelude_${compiler}} ${callsites_flags}
      COMMAND_EXPAND_LISTS)
    set_tests_properties(callsites.${compiler}.${name} PROPERTIES
      LABELS callsites
      FIXTURES_REQUIRED callsites_prelude_${compiler})
  endforeach()
endfunction()

# callsites_instead(): after all mistakes.
function(callsites_instead)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/instead.cpp")
  get_property(instead DIRECTORY PROPERTY callsites_instead)
  file(CONFIGURE OUTPUT "${file}" @ONLY CONTENT "@instead@")
  foreach(compiler IN LISTS callsites_compilers)
    add_test(NAME callsites.${compiler}.instead
      COMMAND "${callsites_${compiler}}" ${callsites_use_prelude_${compiler}} ${callsites_flags}
        -Werror -fsyntax-only "${file}"
      COMMAND_EXPAND_LISTS)
    set_tests_properties(callsites.${compiler}.instead PROPERTIES
      LABELS callsites
      FIXTURES_REQUIRED callsites_prelude_${compiler})
  endforeach()
endfunction()
