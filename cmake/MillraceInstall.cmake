include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(millrace_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/millrace")

install(TARGETS millrace
  EXPORT millrace-targets
  FILE_SET HEADERS
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}") # users' CMake may be too old for file sets
install(EXPORT millrace-targets NAMESPACE millrace:: DESTINATION "${millrace_package_dir}")

# A shared library has linked hiredis; an archive leaves that to its user.
get_target_property(millrace_type millrace TYPE)
if(millrace_type STREQUAL "STATIC_LIBRARY")
  set(millrace_needs_hiredis TRUE)
  set(millrace_pc_requires "fmt, hiredis")
else()
  set(millrace_needs_hiredis FALSE)
  set(millrace_pc_requires "fmt")
endif()

configure_package_config_file(cmake/millrace-config.cmake.in millrace-config.cmake
  INSTALL_DESTINATION "${millrace_package_dir}"
  NO_SET_AND_CHECK_MACRO
  NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(millrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES
    "${PROJECT_BINARY_DIR}/millrace-config.cmake"
    "${PROJECT_BINARY_DIR}/millrace-config-version.cmake"
    cmake/FindHiredis.cmake
  DESTINATION "${millrace_package_dir}")

# The folders are given from the .pc file's own place, so an installation may be moved.
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
  BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig"
  OUTPUT_VARIABLE millrace_pc_prefix)
cmake_path(APPEND millrace_pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
cmake_path(APPEND millrace_pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/millrace.pc.in millrace.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/millrace.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
