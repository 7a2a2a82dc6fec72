# The libraries that must be there, and the table of optional parts that the configure step prints.

if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)  # Boost is found by its own CMake package
endif()

# warren_require(<CMake package> <least version> <Debian package that has it>)
macro(warren_require name version package)
  # The version is compared here: some packages say that they are not what was asked for where theirs is a later major version.
  find_package(${name} QUIET)
  if(NOT ${name}_FOUND OR (${name}_VERSION AND ${name}_VERSION VERSION_LESS ${version}))
    message(FATAL_ERROR "${name} ${version} or later is needed and was not found; on Debian: apt-get install ${package} "
      "(scripts/install-packages installs everything)")
  endif()
endmacro()

set_property(GLOBAL PROPERTY WARREN_PART_LINES "")

# warren_part(<name> <on?> <what it gives> <package that would turn it on>)
function(warren_part name on gives package)
  if(${on})
    set(line "  ${name}: on — ${gives}")
  else()
    set(line "  ${name}: off — ${gives}, to turn it on install ${package}")
  endif()
  set_property(GLOBAL APPEND PROPERTY WARREN_PART_LINES "${line}")
endfunction()

function(warren_print_parts)
  get_property(lines GLOBAL PROPERTY WARREN_PART_LINES)
  message(STATUS "Warren ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  foreach(line IN LISTS lines)
    message(STATUS "${line}")
  endforeach()
endfunction()
