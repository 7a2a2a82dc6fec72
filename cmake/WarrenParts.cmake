# The required libraries, and the table of optional parts that the configure step prints.

if(POLICY CMP0167)
  cmake_policy(SET CMP0167 NEW)  # finds Boost by its own CMake package
endif()

# warren_find(<CMake package> <least version>): finds the package on the machine, or fetches it (WarrenFetch.cmake);
# sets <package>_FOUND.
macro(warren_find package version)
  find_package(${package} ${version} QUIET)
  # Some packages reject requests for an older major version.
  foreach(considered IN LISTS ${package}_CONSIDERED_VERSIONS)
    if(NOT ${package}_FOUND AND considered VERSION_GREATER ${version})
      find_package(${package} ${considered} QUIET)
    endif()
  endforeach()
  if(NOT ${package}_FOUND)
    warren_fetch(${package})
  endif()
  set(warren_least_${package} ${version})
endmacro()

# warren_missing(<library> <Debian package> <Homebrew package>): stops with an error that names the package to install.
function(warren_missing library debian homebrew)
  string(REGEX REPLACE " .*" "" package "${library}")
  get_property(row GLOBAL PROPERTY WARREN_FETCHABLE_${package})
  set(fetch "")
  if(row)
    set(fetch " Or have it fetched: cmake -DWARREN_FETCH=ON.")
  endif()
  message(FATAL_ERROR "${library} is needed and was not found. Debian, Ubuntu: apt-get install ${debian} "
    "(scripts/install-packages build installs everything). Homebrew: brew install ${homebrew}.${fetch}")
endfunction()

# warren_require(<CMake package> <least version> <Debian package> <Homebrew package>): like warren_find; a missing
# package is an error.
macro(warren_require package version debian homebrew)
  warren_find(${package} ${version})
  if(NOT ${package}_FOUND)
    warren_missing("${package} ${version} or later" ${debian} ${homebrew})
  endif()
endmacro()

set_property(GLOBAL PROPERTY WARREN_PART_LINES "")

# warren_part(<name> <on?> <what it provides> <package that would enable it>): adds a row to the table of optional parts.
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
  get_property(fetched GLOBAL PROPERTY WARREN_FETCHED)
  if(fetched)
    list(JOIN fetched ", " fetched)
    message(STATUS "  fetched: ${fetched}")
  endif()
endfunction()
