# Feeds CheckIncludes.cmake a tree that keeps every rule, and then one violation after another.
cmake_minimum_required(VERSION 3.25)

# given(<file> <line>...): ROOT is a small house in good order, plus that file.
function(given file)
  file(REMOVE_RECURSE "${ROOT}")
  file(WRITE "${ROOT}/include/millrace/error.hpp" "#include <string>\n")
  file(WRITE "${ROOT}/include/millrace/format.hpp"
    "#include <fmt/format.h>\n#include <millrace/error.hpp>\n")
  file(WRITE "${ROOT}/src/core/clock.cpp"
    "#include \"core/clock.hpp\"\n#include <fmt/format.h>\n")
  file(WRITE "${ROOT}/src/net/pool.cpp"
    "#include <hiredis/hiredis.h>\n#include \"protocol/reply.hpp\"\n")
  file(WRITE "${ROOT}/src/worker/reader.cpp"
    "#include <millrace/error.hpp>\n#include \"millrace_scripts.hpp\"\n"
    "#include \"stream/append.hpp\"\n#include \"core/clock.hpp\"\n// #include <hiredis/hiredis.h>\n")
  list(JOIN ARGN "\n" text)
  file(WRITE "${ROOT}/${file}" "#include <vector>\n${text}\n")
  execute_process(COMMAND "${CMAKE_COMMAND}" -D "ROOT=${ROOT}" -P "${CHECK}"
    RESULT_VARIABLE result ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(must_accept file)
  given("${file}" ${ARGN})
  if(NOT result EQUAL 0)
    message(SEND_ERROR "${file} with ${ARGN} is in order, but: ${output}")
  endif()
endfunction()

function(must_refuse file line reason)
  given("${file}" "${line}")
  string(FIND "${output}" "${file}: ${line}: ${reason}" place)
  if(result EQUAL 0 OR place EQUAL -1)
    message(SEND_ERROR "${file} with ${line} must be refused: ${reason}. It said: ${output}")
  endif()
endfunction()

must_accept(src/core/a.cpp "#include \"core/b.hpp\"")
must_accept(src/stream/a.cpp "#include \"net/b.hpp\"" "#include <millrace/error.hpp>")
must_accept(src/net/a.hpp "#include <hiredis/read.h>")

foreach(arrow IN ITEMS core:protocol core:worker protocol:net net:stream stream:worker)
  string(REPLACE ":" ";" ends "${arrow}")
  list(POP_FRONT ends from to)
  must_refuse(src/${from}/a.cpp "#include \"${to}/b.hpp\"" "src/${from}/ includes only")
endforeach()
must_refuse(src/core/a.hpp "#include \"../net/b.hpp\"" "src/core/ includes only")
must_refuse(src/core/a.hpp "# include <net/b.hpp>" "src/core/ includes only")
must_refuse(src/net/a.cpp "#include \"b.hpp\"" "src/net/ includes only")

set(a_header include/millrace/a.hpp)
must_refuse(${a_header} "#include \"core/clock.hpp\"" "a public header includes public")
must_refuse(${a_header} "#include \"../../src/core/clock.hpp\"" "a public header includes public")

must_refuse(src/stream/a.cpp "#include <hiredis/hiredis.h>" "only src/net/ includes hiredis")
must_refuse(src/worker/a.hpp "#include \"hiredis/read.h\"" "only src/net/ includes hiredis")
must_refuse(${a_header} "#include <hiredis/hiredis.h>" "only src/net/ includes hiredis")

must_refuse(${a_header} "#include <fmt/core.h>" "only millrace/format.hpp brings fmt")
must_refuse(${a_header} "#include <millrace/format.hpp>" "only millrace/format.hpp brings fmt")
