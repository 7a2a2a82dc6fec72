# Manual pages and shell completions, which the programs print from the tables of their options. The files of `warren` go
# into the wheel and into the package python3-warren, which contain that command.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()
add_custom_target(warren_shell_files ALL)

# warren_shell_file(<folder in share>/<name> COMMAND ... [DEPENDS ...] [OF_PYTHON]): writes the command's output to the file. OF_PYTHON: not
# for `cmake --install`, which does not install the Python package.
function(warren_shell_file path)
  cmake_parse_arguments(ARG "OF_PYTHON" "" "COMMAND;DEPENDS" ${ARGN})
  set(file ${PROJECT_BINARY_DIR}/share/${path})
  get_filename_component(folder ${path} DIRECTORY)  # cmake_path of CMake 3.22.1 would return the whole path
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/${folder})
  # The output is first written under another name, so that a failed command does not leave an incomplete file.
  add_custom_command(OUTPUT ${file}
    COMMAND ${ARG_COMMAND} > ${file}.new
    COMMAND ${CMAKE_COMMAND} -E rename ${file}.new ${file}
    DEPENDS ${ARG_DEPENDS} VERBATIM)
  string(MAKE_C_IDENTIFIER warren_${path} target)
  add_custom_target(${target} DEPENDS ${file})
  add_dependencies(warren_shell_files ${target})
  if(SKBUILD)
    install(FILES ${file} DESTINATION ${SKBUILD_DATA_DIR}/share/${folder} COMPONENT python EXCLUDE_FROM_ALL)
  elseif(ARG_OF_PYTHON)
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${folder} COMPONENT python3 EXCLUDE_FROM_ALL)
  else()
    install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/${folder} COMPONENT programs)
  endif()
endfunction()

foreach(program dmlc-submit rabit-tracker)
  warren_shell_file(man/man1/${program}.1 COMMAND ${program} --help-man DEPENDS ${program})
endforeach()
warren_shell_file(bash-completion/completions/dmlc-submit COMMAND dmlc-submit --completion bash DEPENDS dmlc-submit)
warren_shell_file(zsh/site-functions/_dmlc-submit COMMAND dmlc-submit --completion zsh DEPENDS dmlc-submit)
warren_shell_file(fish/vendor_completions.d/dmlc-submit.fish COMMAND dmlc-submit --completion fish DEPENDS dmlc-submit)

if(NOT SKBUILD AND NOT WARREN_DEBIAN)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(package ${PROJECT_SOURCE_DIR}/python/src)
set(native ${PROJECT_BINARY_DIR})
if(CMAKE_CROSSCOMPILING)  # this machine's Python starts the program through the emulator
  set(native ${PROJECT_BINARY_DIR}/emulated)
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
  file(GENERATE OUTPUT ${native}/bin/dmlc-submit CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:dmlc-submit> \"$@\"\n"
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
endif()
set(warren ${CMAKE_COMMAND} -E env PYTHONPATH=${package} PYTHONDONTWRITEBYTECODE=1 WARREN_NATIVE=${native}
  ${Python3_EXECUTABLE})
file(GLOB sources CONFIGURE_DEPENDS ${package}/warren/__*.py ${package}/warren/_engine/native.py ${package}/warren/_tools/*.py
  ${package}/warren/_tools/*/*.py)
warren_shell_file(man/man1/warren.1 OF_PYTHON DEPENDS ${sources} COMMAND ${warren} -m warren._tools.man ${PROJECT_VERSION})
warren_shell_file(bash-completion/completions/warren OF_PYTHON DEPENDS dmlc-submit ${sources}
  COMMAND ${warren} -m warren --completion bash)
warren_shell_file(zsh/site-functions/_warren OF_PYTHON DEPENDS dmlc-submit ${sources}
  COMMAND ${warren} -m warren --completion zsh)
warren_shell_file(fish/vendor_completions.d/warren.fish OF_PYTHON DEPENDS dmlc-submit ${sources}
  COMMAND ${warren} -m warren --completion fish)
if(SKBUILD)
  add_dependencies(warren_python warren_shell_files)
endif()
