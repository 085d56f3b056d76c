include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/millrace")

install(TARGETS millrace EXPORT millrace-targets FILE_SET HEADERS)
install(EXPORT millrace-targets NAMESPACE millrace:: DESTINATION "${package_dir}")
