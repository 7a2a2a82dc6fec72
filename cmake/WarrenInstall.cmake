# What `cmake --install` leaves behind: programs, libraries, headers, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

set(WARREN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/warren)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/warrenConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warrenConfig.cmake INSTALL_DESTINATION ${WARREN_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warrenConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/warren.pc.in ${PROJECT_BINARY_DIR}/warren.pc @ONLY)

install(EXPORT warrenTargets NAMESPACE warren:: DESTINATION ${WARREN_CMAKE_DIR})
install(FILES ${PROJECT_BINARY_DIR}/warrenConfig.cmake ${PROJECT_BINARY_DIR}/warrenConfigVersion.cmake
  DESTINATION ${WARREN_CMAKE_DIR})
install(FILES ${PROJECT_BINARY_DIR}/warren.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
