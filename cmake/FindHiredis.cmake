# Finds hiredis, 0.14 or 1.x: the target Hiredis::hiredis, with headers as <hiredis/hiredis.h>.
#
# Not every release brings a package config, and those of the others differ (Debian's defines no
# target), so this looks for the files themselves: under Hiredis_ROOT and CMAKE_PREFIX_PATH, then
# where pkg-config says (PKG_CONFIG_PATH), then in the system.
#
# The headers lay out structures that the library fills, so both must be of one release: the library
# is looked for beside the headers, and what is found must be the one that they are for.
#
# Sets Hiredis_VERSION, and Hiredis_SONAME: the ABI that code compiled with these headers has.

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_Hiredis QUIET hiredis)
endif()

find_path(Hiredis_INCLUDE_DIR hiredis/hiredis.h
  HINTS "${PC_Hiredis_PREFIX}/include" "${PC_Hiredis_INCLUDEDIR}")

if(Hiredis_INCLUDE_DIR)
  cmake_path(GET Hiredis_INCLUDE_DIR PARENT_PATH _hiredis_prefix)
  find_library(Hiredis_LIBRARY NAMES hiredis hiredisd
    HINTS "${_hiredis_prefix}" "${PC_Hiredis_LIBDIR}"
    PATH_SUFFIXES lib "lib/${CMAKE_LIBRARY_ARCHITECTURE}" lib64
    NO_DEFAULT_PATH)

  file(READ "${Hiredis_INCLUDE_DIR}/hiredis/hiredis.h" _hiredis_header)
  foreach(_hiredis_part MAJOR MINOR PATCH SONAME)
    string(REGEX MATCH "#define HIREDIS_${_hiredis_part} ([0-9a-z.-]+)" _ "${_hiredis_header}")
    set(_hiredis_${_hiredis_part} "${CMAKE_MATCH_1}")
  endforeach()
  set(Hiredis_VERSION "${_hiredis_MAJOR}.${_hiredis_MINOR}.${_hiredis_PATCH}")
  set(Hiredis_SONAME "${_hiredis_SONAME}")
endif()

# A shared library carries its SONAME in the name of its file; of an archive nothing can be told.
set(Hiredis_HEADERS_MATCH_LIBRARY TRUE)
set(_hiredis_reason "")
if(Hiredis_LIBRARY)
  file(REAL_PATH "${Hiredis_LIBRARY}" _hiredis_file)
  if(_hiredis_file MATCHES "\\.so\\.(.+)$" AND NOT CMAKE_MATCH_1 STREQUAL Hiredis_SONAME)
    set(Hiredis_HEADERS_MATCH_LIBRARY FALSE)
    string(CONCAT _hiredis_reason
      "The headers in ${Hiredis_INCLUDE_DIR} are for libhiredis.so.${Hiredis_SONAME}, but the "
      "library is ${_hiredis_file}. Set Hiredis_ROOT to the prefix of one whole installation.")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Hiredis
  REQUIRED_VARS Hiredis_LIBRARY Hiredis_INCLUDE_DIR Hiredis_HEADERS_MATCH_LIBRARY
  VERSION_VAR Hiredis_VERSION
  REASON_FAILURE_MESSAGE "${_hiredis_reason}")

if(Hiredis_FOUND AND NOT TARGET Hiredis::hiredis)
  add_library(Hiredis::hiredis UNKNOWN IMPORTED)
  set_target_properties(Hiredis::hiredis PROPERTIES
    IMPORTED_LOCATION "${Hiredis_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Hiredis_INCLUDE_DIR}")
endif()

mark_as_advanced(Hiredis_INCLUDE_DIR Hiredis_LIBRARY)
