# The install rules for files that belong to no single target: the CMake package, pkg-config files, the license, manual pages and shell
# completions.
include(CMakePackageConfigHelpers)

# Users of our libraries need the libraries that these were compiled with, except those that were fetched and compiled in.
get_property(compiled_in GLOBAL PROPERTY WARREN_COMPILED_IN)
function(warren_dependencies result)
  set(lines "")
  foreach(package IN LISTS ARGN)
    if(NOT package IN_LIST compiled_in)
      list(APPEND lines "find_dependency(${package} ${warren_least_${package}})")
    endif()
  endforeach()
  list(JOIN lines "\n  " lines)
  set(${result} "${lines}" PARENT_SCOPE)
endfunction()
warren_dependencies(warren_tracker_dependencies Boost fmt spdlog)
warren_dependencies(warren_data_dependencies fmt ZLIB BZip2 LibLZMA)
set(warren_pc_requires fmt spdlog)
list(REMOVE_ITEM warren_pc_requires ${compiled_in})
list(JOIN warren_pc_requires " " warren_pc_requires)

set(WARREN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/warren)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/warrenConfig.cmake.in
  ${PROJECT_BINARY_DIR}/warrenConfig.cmake INSTALL_DESTINATION ${WARREN_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warrenConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/warrenConfig.cmake ${PROJECT_BINARY_DIR}/warrenConfigVersion.cmake
  DESTINATION ${WARREN_CMAKE_DIR} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
include(cmake/WarrenShellFiles.cmake)

# The pkg-config files use paths relative to themselves, so that a tree can be installed in, or moved to, any folder, unless
# CMAKE_INSTALL_LIBDIR is absolute.
set(warren_pc_run_path "")
set(warren_pc_prefix ${CMAKE_INSTALL_PREFIX})
set(warren_pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
set(warren_pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" up ${up})
  set(warren_pc_prefix "\${pcfiledir}/${up}")
  set(warren_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(warren_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
  endif()
endif()

# warren_install_package(<export> <name.pc>): installs the CMake file that defines the targets of an export set, and a pkg-config file.
function(warren_install_package export pc)
  install(EXPORT ${export} NAMESPACE warren:: DESTINATION ${WARREN_CMAKE_DIR} COMPONENT development)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${pc}.in ${PROJECT_BINARY_DIR}/${pc} @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${pc} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endfunction()
warren_install_package(warrenTargets warren.pc)
install(EXPORT warrenDataTargets NAMESPACE warren:: DESTINATION ${WARREN_CMAKE_DIR} COMPONENT development)
if(TARGET warren::rabit)
  warren_install_package(warrenRabitTargets rabit.pc)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/rabit_xgboost.pc.in ${PROJECT_BINARY_DIR}/rabit_xgboost.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/rabit_xgboost.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endif()
