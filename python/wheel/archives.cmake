# Makes CMake find other projects' archives instead of their shared libraries, and no dmlc-core.
set(CMAKE_FIND_LIBRARY_SUFFIXES .a .so)  # .so for CUDA, since FindCUDAToolkit needs one
set(DMLC_LIBRARY OFF CACHE STRING "not in wheels" FORCE)  # also disables the search
set(BZIP2_LIBRARY_RELEASE ${WARREN_SYSROOT}/lib/libbz2.a CACHE FILEPATH "")
find_library(WARREN_YAML_CPP_LIBRARY yaml-cpp REQUIRED)
foreach(package fmt spdlog yaml-cpp)
  # When compiling for another architecture, CMake does not search this folder.
  file(GLOB ${package}_DIR /usr/lib/${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu/cmake/${package})
  find_package(${package} REQUIRED)
endforeach()
foreach(target fmt::fmt spdlog::spdlog yaml-cpp)
  set(archive ${WARREN_SYSROOT}/lib/lib${target}.a)
  string(REGEX REPLACE "lib[a-z]+::" "lib" archive ${archive})
  if(target STREQUAL yaml-cpp)
    set(archive ${WARREN_YAML_CPP_LIBRARY})
  endif()
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION_NONE ${archive})
endforeach()
