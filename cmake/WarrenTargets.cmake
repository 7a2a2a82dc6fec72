# The compile options of all targets of this tree, and functions that define libraries and programs. Warnings are errors
# only with WARREN_WERROR, as in the presets. WARREN_SANITIZE selects sanitizers.

# The files of a target are compiled in groups, so that shared headers are parsed once per group; a build from scratch
# takes a third of the time. Each file still includes what it uses (scripts/lint --deep checks each file by itself), and
# no two files of a group use the same name for different things in their unnamed namespaces. -DCMAKE_UNITY_BUILD=OFF
# compiles each file separately.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
endif()

add_library(warren_compile_options INTERFACE)
target_compile_options(warren_compile_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra>)
# GCC 11 treats an array's size() as a use of its elements, and does not support maybe_unused on members.
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  target_compile_options(warren_compile_options INTERFACE -Wno-maybe-uninitialized -Wno-attributes)
endif()
# In a group, GCC treats the files as headers, where a type with a member from an unnamed namespace would be a mistake.
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  target_compile_options(warren_compile_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()
if(WARREN_WERROR)
  target_compile_options(warren_compile_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
endif()
if(WARREN_SANITIZE)
  target_compile_options(warren_compile_options INTERFACE
    -fsanitize=${WARREN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(warren_compile_options INTERFACE -fsanitize=${WARREN_SANITIZE})
  if(WARREN_SANITIZE MATCHES undefined)
    # The vptr check reads objects through a pipe: without free descriptors, it reports every object as wrong.
    target_compile_options(warren_compile_options INTERFACE -fno-sanitize=vptr)
  endif()
endif()

# warren_elf_link_options(<target> <option>...): adds options that only linkers for ELF have. macOS has another format
# and does not need them: there, CMake and the visibility of symbols suffice, and a library with thread-local variables
# is never unloaded.
function(warren_elf_link_options target)
  if(NOT APPLE)
    target_link_options(${target} PRIVATE ${ARGN})
  endif()
endfunction()

# The loader's name for the folder of a program or library.
set(WARREN_ORIGIN $ORIGIN)
if(APPLE)
  set(WARREN_ORIGIN @loader_path)
endif()

# warren_library(<folder> SOURCES ... HEADERS ... [LINK ...] [INSTALL]): defines the static library warren_<folder>. With
# INSTALL, users of the CMake package have it as warren::<folder>. Its headers are included as "<folder>/name.h", both in
# the tree and from the installed package.
function(warren_library folder)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;HEADERS;LINK" ${ARGN})
  set(target warren_${folder})
  add_library(${target} STATIC ${ARG_SOURCES} ${ARG_HEADERS})
  add_library(warren::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/warren>)
  # Fetched libraries are compiled into the objects, so users of the installed library do not need them.
  get_property(compiled_in GLOBAL PROPERTY WARREN_COMPILED_IN)
  foreach(library IN LISTS ARG_LINK)
    if(library IN_LIST compiled_in)
      set(library $<BUILD_INTERFACE:${library}>)
    endif()
    target_link_libraries(${target} PUBLIC ${library})
  endforeach()
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:warren_compile_options>)
  if(ARG_INSTALL)
    install(TARGETS ${target} EXPORT warrenTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    install(FILES ${ARG_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warren/${folder} COMPONENT development)
  endif()
endfunction()

# warren_program(<name> SOURCES ... [LINK ...] [INSTALL]): defines a program. With INSTALL, it is installed, and compiled
# with the macro WARREN_VERSION, for --version.
function(warren_program name)
  cmake_parse_arguments(ARG "INSTALL" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} warren_compile_options)
  if(ARG_INSTALL)
    target_compile_definitions(${name} PRIVATE WARREN_VERSION="${PROJECT_VERSION}")
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
  endif()
endfunction()
