# What `cmake --install` leaves behind: programs, libraries, headers, a CMake package and pkg-config files.
include(CMakePackageConfigHelpers)

set(WARREN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/warren)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/warrenConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warrenConfig.cmake INSTALL_DESTINATION ${WARREN_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warrenConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/warrenConfig.cmake ${PROJECT_BINARY_DIR}/warrenConfigVersion.cmake
  DESTINATION ${WARREN_CMAKE_DIR})

# warren_install_package(<export> <name.pc>): one component's targets and its pkg-config file.
function(warren_install_package export pc)
  install(EXPORT ${export} NAMESPACE warren:: DESTINATION ${WARREN_CMAKE_DIR})
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${pc}.in ${PROJECT_BINARY_DIR}/${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
warren_install_package(warrenTargets warren.pc)
install(EXPORT warrenDataTargets NAMESPACE warren:: DESTINATION ${WARREN_CMAKE_DIR})
if(TARGET warren::rabit)
  warren_install_package(warrenRabitTargets rabit.pc)
endif()
