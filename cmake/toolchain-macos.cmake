# Compiles for macOS on arm64 without a Mac, with the compiler and headers of the PyPI package ziglang and the libraries
# that scripts/cross-check has built. WARREN_MACOS is the folder that scripts/cross-check has made.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WARREN_MACOS)
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
foreach(language C CXX)
  set(CMAKE_${language}_COMPILER ${WARREN_MACOS}/bin/${language})
endforeach()
set(CMAKE_AR ${WARREN_MACOS}/bin/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${WARREN_MACOS}/bin/ranlib CACHE FILEPATH "")
# CMake requires this tool, which changes paths at installation.
set(CMAKE_INSTALL_NAME_TOOL /bin/true CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH ${WARREN_MACOS}/deps)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
