# Feeds CheckDocs.cmake a tree whose documents tell what is there, and then one that is wrong after
# another.
cmake_minimum_required(VERSION 3.25)

set(row "| it breaks; or not | no | `fault.Lease.IsKept`, `examples.pipeline` |")
string(CONCAT guarantees
  "See `Delivery::stop`.\n\n| when | lost? | shown by |\n| --- | --- | --- |\n${row}\n"
  "| it [is] late | no | `fault.Lease.OfEachKind/A` |\n\n"
  "| an | other `table` |\n| --- | --- |\n| 1 | 2 |\n")
string(CONCAT configuration
  "# Options\n\n## ReadOptions\n\n| option | default |\n| --- | --- |\n| `count` | 10 |\n"
  "| `stop` | none |\n\n## PendingQuery\n\n| `from` | 1 |\n| `to` | 2 |\n\n"
  "## URIs\n\n| `db` | `database` |\n")

# given(<guarantees> <configuration>): ROOT is a small house in good order, but for these documents.
function(given guarantees configuration)
  file(REMOVE_RECURSE "${ROOT}")
  file(WRITE "${ROOT}/tests/CMakeLists.txt" "add_test(NAME rules.docs\n  COMMAND true)\n")
  file(WRITE "${ROOT}/tests/examples/CMakeLists.txt"
    "function(millrace_add_example_test name)\nendfunction()\n\n"
    "millrace_add_example_test(pipeline\n  x)\n")
  file(WRITE "${ROOT}/tests/fault/CMakeLists.txt"
    "millrace_add_tests(fault PUBLIC_API LABEL fault SOURCES\n  lease_test.cpp\n  \${it}/lease.cpp)\n")
  file(WRITE "${ROOT}/tests/fault/lease_test.cpp"
    "#include <gtest/gtest.h>\nTEST_F(Lease, IsKept) { EXPECT_EQ(a[0], 1); }\n\n"
    "TEST_P(Lease,\n       OfEachKind) {}\n// TEST(Lease, IsNoMore) {}\n")
  file(WRITE "${ROOT}/tests/fault/unlisted_test.cpp" "\nTEST(Lease, IsInNoProgram) {}\n")
  file(WRITE "${ROOT}/include/millrace/options.hpp"
    "/// How to read.\nstruct ReadOptions {\n  /// Two: `struct X {`; and more.\n"
    "  std::size_t count = std::size_t{10} << 1;  ///< At least 1; 0 is refused.\n"
    "  struct Inner {\n    int no_option = 0;\n  };\n"
    "  std::function<void(const Entry&)>\n      stop{};\n"
    "  static ReadOptions from(std::string_view text);\n};\n\n"
    "struct ReadResult {\n  int no_option = 0;\n};\n\n"
    "struct PendingQuery {\n  int from{1}, to{2};\n};\n")
  file(WRITE "${ROOT}/src/net/uri.cpp" "constexpr std::array kKnown{\n    Known{\"db\", read},\n};\n")
  file(WRITE "${ROOT}/docs/guarantees.md" "${guarantees}")
  file(WRITE "${ROOT}/docs/configuration.md" "${configuration}")
  execute_process(COMMAND "${CMAKE_COMMAND}" -D "ROOT=${ROOT}" -P "${CHECK}"
    RESULT_VARIABLE result ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(result "${result}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

given("${guarantees}" "${configuration}")
if(NOT result EQUAL 0)
  message(SEND_ERROR "These documents are in order, but: ${output}")
endif()

# must_refuse(<text> <in its place> <reason>): in either document.
function(must_refuse text instead reason)
  string(REPLACE "${text}" "${instead}" other_guarantees "${guarantees}")
  string(REPLACE "${text}" "${instead}" other_configuration "${configuration}")
  if(other_guarantees STREQUAL guarantees AND other_configuration STREQUAL configuration)
    message(SEND_ERROR "No document has '${text}'.")
  endif()
  given("${other_guarantees}" "${other_configuration}")
  string(FIND "${output}" "${reason}" place)
  if(result EQUAL 0 OR place EQUAL -1)
    message(SEND_ERROR "'${instead}' must be refused: ${reason}. It said: ${output}")
  endif()
endfunction()

must_refuse(IsKept IsNotKept "guarantees.md: there is no test fault.Lease.IsNotKept")
must_refuse(fault.Lease.IsKept integration.Lease.IsKept "there is no test integration.Lease.IsKept")
must_refuse(Lease.IsKept Leases.IsKept "there is no test fault.Leases.IsKept")
must_refuse(IsKept IsNoMore "there is no test fault.Lease.IsNoMore")
must_refuse(IsKept IsInNoProgram "there is no test fault.Lease.IsInNoProgram")
must_refuse(OfEachKind/A OfNoKind/A "there is no test fault.Lease.OfNoKind/A")
must_refuse(examples.pipeline examples.name "there is no test examples.name")
must_refuse("`Delivery::stop`" "`fault.Lease.IsNotKept`" "there is no test fault.Lease.IsNotKept")
must_refuse("`fault.Lease.OfEachKind/A`" "a test" "no test shows '| it is late")
must_refuse("shown by" "tests" "no table has a last column 'shown by'")

must_refuse("| `count` | 10 |\n" "" "configuration.md: ReadOptions does not tell of 'count'")
must_refuse("| `stop` | none |\n" "`stop`\n" "ReadOptions does not tell of 'stop'")
must_refuse("| `to` | 2 |\n" "" "PendingQuery does not tell of 'to'")
must_refuse("| `count` |" "| `counts` |" "ReadOptions has no 'counts'")
must_refuse("| `to` |" "| `count` |" "PendingQuery has no 'count'")
must_refuse("## PendingQuery" "### PendingQuery" "there is no section 'PendingQuery'")
must_refuse("| `db` |" "| `database` |" "URIs does not tell of 'db'")
