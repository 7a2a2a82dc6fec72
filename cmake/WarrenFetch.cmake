# Libraries that are fetched if the machine lacks them, one row each. Only their headers and sources are used, not their build files:
# nothing is built that is not needed, and nothing is installed.
#   WARREN_FETCH                        OFF: a missing library is an error
#   WARREN_FETCH_MIRROR                 a folder or URL from which archives are taken first
#   FETCHCONTENT_SOURCE_DIR_<PACKAGE>   a folder with an unpacked library
include(FetchContent)
option(WARREN_FETCH "fetch libraries that are missing" ON)
set(WARREN_FETCH_MIRROR "" CACHE STRING "folder or URL with the archives to fetch, each named <package>-<version>.<ending> in lower case")

# warren_fetchable(<CMake package> <version> <URL> <SHA-256> TARGETS <target>... HEADERS <folder>...
#   [DEFINE <macro>...] [LINK <target>...] [SOURCES <pattern>... [OWN_HEADERS <folder>...]] [IN_OUR_HEADERS])
# Each target stands for the whole library. SOURCES are compiled into it. IN_OUR_HEADERS: users of our installed headers need the library,
# too.
function(warren_fetchable package version url hash)
  set_property(GLOBAL PROPERTY WARREN_FETCHABLE_${package} "${version};${url};${hash};${ARGN}")
endfunction()

warren_fetchable(Boost 1.86.0
  https://archives.boost.io/release/1.86.0/source/boost_1_86_0.tar.bz2
  1bed88e40401b2cb7a1f76d4bab499e352fa4d0c5f31c0dbae64e24d34d7513b
  TARGETS Boost::headers HEADERS . IN_OUR_HEADERS)
warren_fetchable(fmt 11.2.0
  https://github.com/fmtlib/fmt/archive/refs/tags/11.2.0.tar.gz
  bc23066d87ab3168f27cef3e97d545fa63314f5c79df5ea444d41d56f962c6af
  TARGETS fmt::fmt fmt::fmt-header-only HEADERS include DEFINE FMT_HEADER_ONLY=1)
warren_fetchable(spdlog 1.15.3
  https://github.com/gabime/spdlog/archive/refs/tags/v1.15.3.tar.gz
  15a04e69c222eb6c01094b5c7ff8a249b36bb22788d72519646fb85feb267e67
  TARGETS spdlog::spdlog HEADERS include DEFINE SPDLOG_FMT_EXTERNAL LINK fmt::fmt Threads::Threads)
warren_fetchable(CLI11 2.4.2
  https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.4.2.tar.gz
  f2d893a65c3b1324c50d4e682c0cdc021dd0477ae2c048544f39eed6654b699a
  TARGETS CLI11::CLI11 HEADERS include)
warren_fetchable(FastFloat 8.0.2
  https://github.com/fastfloat/fast_float/archive/refs/tags/v8.0.2.tar.gz
  e14a33089712b681d74d94e2a11362643bd7d769ae8f7e7caefe955f57f7eacd
  TARGETS FastFloat::fast_float HEADERS include)
warren_fetchable(nlohmann_json 3.11.3
  https://github.com/nlohmann/json/archive/refs/tags/v3.11.3.tar.gz
  0d8ef5af7f9794e3263480193c491549b2ba6cc74bb018906202ada498a79406
  TARGETS nlohmann_json::nlohmann_json HEADERS include)
warren_fetchable(yaml-cpp 0.9.0
  https://github.com/jbeder/yaml-cpp/archive/refs/tags/yaml-cpp-0.9.0.tar.gz
  25cb043240f828a8c51beb830569634bc7ac603978e0f69d6b63558dadefd49a
  TARGETS yaml-cpp::yaml-cpp HEADERS include DEFINE YAML_CPP_STATIC_DEFINE SOURCES src/*.cpp src/contrib/*.cpp)
warren_fetchable(GTest 1.15.2
  https://github.com/google/googletest/archive/refs/tags/v1.15.2.tar.gz
  7b42b4d6ed48810c5362c265a17faebe90dc2373c885e5216439d37927f02926
  TARGETS GTest::gtest GTest::gmock GTest::gtest_main HEADERS googletest/include googlemock/include LINK Threads::Threads
  SOURCES googletest/src/gtest-all.cc googlemock/src/gmock-all.cc googletest/src/gtest_main.cc OWN_HEADERS googletest googlemock)

# warren_mirrored(<result> <library> <file> <SHA-256>): sets the result to the archive in WARREN_FETCH_MIRROR, or to ""
# if the mirror lacks it.
function(warren_mirrored result library file hash)
  set(${result} "" PARENT_SCOPE)
  if(WARREN_FETCH_MIRROR STREQUAL "")
    return()
  endif()
  get_filename_component(archive ${WARREN_FETCH_MIRROR}/${file} ABSOLUTE)
  if(WARREN_FETCH_MIRROR MATCHES "^[a-z]+://")
    set(archive ${PROJECT_BINARY_DIR}/fetched/${file})
    if(NOT EXISTS ${archive})
      file(DOWNLOAD ${WARREN_FETCH_MIRROR}/${file} ${archive}.part STATUS status)
      if(NOT status MATCHES "^0;")
        list(POP_BACK status reason)
        message(STATUS "${WARREN_FETCH_MIRROR}/${file}: ${reason}")
        return()
      endif()
      file(RENAME ${archive}.part ${archive})
    endif()
  elseif(NOT EXISTS ${archive})
    message(STATUS "${archive} is not there")
    return()
  endif()
  file(SHA256 ${archive} found)
  if(NOT found STREQUAL hash)
    message(FATAL_ERROR "${archive} is not ${library}: its SHA-256 is ${found}, expected ${hash}. Replace it, or remove it to fetch the original.")
  endif()
  set(${result} ${archive} PARENT_SCOPE)
endfunction()

# warren_fetch(<CMake package>): if there is a row for the package and WARREN_FETCH is on, fetches it and sets
# <package>_FOUND and <package>_FETCHED.
function(warren_fetch package)
  get_property(row GLOBAL PROPERTY WARREN_FETCHABLE_${package})
  if(NOT row OR NOT WARREN_FETCH)
    return()
  endif()
  list(POP_FRONT row version url hash)
  cmake_parse_arguments(ROW "IN_OUR_HEADERS" "" "TARGETS;HEADERS;DEFINE;LINK;SOURCES;OWN_HEADERS" ${row})
  string(TOLOWER ${package} name)
  string(REGEX MATCH "[.]tar[.].*" ending ${url})
  string(TOUPPER FETCHCONTENT_SOURCE_DIR_${package} unpacked)
  if(DEFINED ${unpacked})
    set(source ${${unpacked}})
  else()
    warren_mirrored(source "${package} ${version}" ${name}-${version}${ending} ${hash})
    if(source STREQUAL "")
      set(source ${url})
    endif()
  endif()
  message(STATUS "${package} was not found, and is taken from ${source} (WARREN_FETCH=OFF would not)")
  if(POLICY CMP0135)
    cmake_policy(SET CMP0135 NEW)
  endif()
  # SOURCE_SUBDIR names a folder that does not exist, so that the library's own build files are not run.
  FetchContent_Declare(${package} URL ${source} URL_HASH SHA256=${hash} SOURCE_SUBDIR not-used-by-warren)
  FetchContent_MakeAvailable(${package})
  warren_fetched_targets(${package} ${${name}_SOURCE_DIR})
  set_property(GLOBAL APPEND PROPERTY WARREN_FETCHED "${package} from ${source}")
  if(NOT ROW_IN_OUR_HEADERS)
    set_property(GLOBAL APPEND PROPERTY WARREN_COMPILED_IN ${package} ${ROW_TARGETS})
  endif()
  set(${package}_FOUND TRUE PARENT_SCOPE)
  set(${package}_FETCHED TRUE PARENT_SCOPE)
endfunction()

# Defines the library's targets from the caller's ROW_... variables.
function(warren_fetched_targets package folder)
  list(TRANSFORM ROW_HEADERS PREPEND ${folder}/)
  set(library warren_fetched_${package})
  if(ROW_SOURCES)
    list(TRANSFORM ROW_SOURCES PREPEND ${folder}/)
    list(TRANSFORM ROW_OWN_HEADERS PREPEND ${folder}/)
    file(GLOB sources ${ROW_SOURCES})
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${sources})
    # Each file is a separate object, so that GoogleTest's `main` is linked only into programs without a `main`.
    set_target_properties(${library} PROPERTIES UNITY_BUILD OFF)
    set(scope PUBLIC)
    target_include_directories(${library} PRIVATE ${ROW_OWN_HEADERS})
    target_compile_options(${library} PRIVATE -w)
    # For the options of the sanitizers.
    target_link_libraries(${library} PRIVATE warren_compile_options)
  else()
    add_library(${library} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${library} SYSTEM ${scope} ${ROW_HEADERS})
  target_compile_definitions(${library} ${scope} ${ROW_DEFINE})
  target_link_libraries(${library} ${scope} ${ROW_LINK})
  foreach(target IN LISTS ROW_TARGETS)
    # An imported target, because install(EXPORT) refers to such targets by name. The library behind an ALIAS target would
    # have to be exported, too.
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_link_libraries(${target} INTERFACE ${library})
  endforeach()
endfunction()
