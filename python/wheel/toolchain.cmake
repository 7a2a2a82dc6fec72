# The toolchain for wheels: compiles like the default one, so that ccache can be shared, but links with the libraries of WARREN_SYSROOT
# (sysroot). WARREN_ARCHITECTURE is x86_64 or aarch64.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WARREN_SYSROOT WARREN_ARCHITECTURE)
if(NOT WARREN_ARCHITECTURE STREQUAL CMAKE_HOST_SYSTEM_PROCESSOR)
  set(triplet ${WARREN_ARCHITECTURE}-linux-gnu)
  set(CMAKE_SYSTEM_NAME Linux)
  set(CMAKE_SYSTEM_PROCESSOR ${WARREN_ARCHITECTURE})
  set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${WARREN_ARCHITECTURE}-static -L /usr/${triplet})
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
  set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
  set(CMAKE_FIND_ROOT_PATH ${WARREN_SYSROOT}/deps)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  # Headers are the same for all architectures, except OpenSSL's configuration and Python's.
  set(CMAKE_CXX_FLAGS_INIT "-idirafter ${WARREN_SYSROOT}/deps/usr/include/${triplet} -idirafter ${WARREN_SYSROOT}/deps/usr/include")
endif()

# The system's libstdc++ and libgcc_s need symbols of a newer glibc, which must not fail the link.
set(link "-B${WARREN_SYSROOT}/lib/ -L${WARREN_SYSROOT}/lib -Wl,--allow-shlib-undefined -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,-s")
foreach(kind EXE SHARED MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT ${link})
endforeach()
set(CMAKE_PROJECT_warren_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/archives.cmake)
