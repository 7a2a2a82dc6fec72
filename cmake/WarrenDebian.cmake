# Debian packages by `cpack -G DEB`, for scripts/package: one package for each component of the install rules, the dependencies that
# dpkg-shlibdeps does not find, and two kinds of files that `cmake --install` does not install: the Python package, and manual pages of the
# programs that cannot write their own.
set(CPACK_COMPONENTS_ALL programs libraries development python3)
set(WARREN_DEBIAN_VERSION ${PROJECT_VERSION} CACHE STRING "upstream version of the Debian packages")
set(WARREN_DEBIAN_REVISION 1)
set(whole_version ${WARREN_DEBIAN_VERSION}-${WARREN_DEBIAN_REVISION})
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

find_program(HELP2MAN help2man REQUIRED)
function(warren_man_by_help program summary)
  if(TARGET ${program})
    warren_shell_file(man/man1/${program}.1 DEPENDS ${program}
      COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib
      ${HELP2MAN} --no-info --section=1 --source=Warren --manual=Warren --name=${summary} $<TARGET_FILE:${program}>)
  endif()
endfunction()
warren_man_by_help(rabit-data "look into data sets, check them, and make others of them")
warren_man_by_help(make_libsvm "write LibSVM text of any size, the same for the same seed")
warren_man_by_help(histgbt "gradient boosted trees over the rabit API")
warren_man_by_help(xgb-train "train with XGBoost from a configuration file")

# The Python package. Its warren/_native has the same contents as in the wheel, but the files of other packages are links.
set(python lib/python3/dist-packages)
set(native ${python}/warren/_native)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/src/warren DESTINATION ${python} COMPONENT python3 EXCLUDE_FROM_ALL
  PATTERN __pycache__ EXCLUDE)
install(TARGETS warren_data_c LIBRARY DESTINATION ${native}/lib COMPONENT python3 EXCLUDE_FROM_ALL)
if(TARGET warren_python_allreduce)
  install(TARGETS warren_python_allreduce LIBRARY DESTINATION ${native}/lib COMPONENT python3 EXCLUDE_FROM_ALL)
endif()
# warren_native_link(<name in _native> <file below the prefix>): installs a link of this name to the file.
function(warren_native_link name file)
  set(folder ${native}/${name})
  get_filename_component(folder ${folder} DIRECTORY)
  file(RELATIVE_PATH target /${folder} /${file})
  set(folder "\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${folder}")
  get_filename_component(name ${name} NAME)
  install(CODE "file(MAKE_DIRECTORY \"${folder}\")
file(CREATE_LINK ${target} \"${folder}/${name}\" SYMBOLIC)" COMPONENT python3 EXCLUDE_FROM_ALL)
endfunction()
foreach(program dmlc-submit rabit-tracker rabit-data)
  warren_native_link(bin/${program} ${CMAKE_INSTALL_BINDIR}/${program})
endforeach()
foreach(library rabit rabit_xgboost)
  warren_native_link(lib/lib${library}.so ${CMAKE_INSTALL_LIBDIR}/lib${library}.so.${soversion})
endforeach()
set(folder ${PROJECT_BINARY_DIR}/debian)
file(WRITE ${folder}/warren "#!/usr/bin/python3
import sys

from warren.__main__ import main

sys.exit(main())
")
install(PROGRAMS ${folder}/warren DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT python3 EXCLUDE_FROM_ALL)
# The name and version of the Python package, for importlib.metadata and pip.
file(STRINGS ${PROJECT_SOURCE_DIR}/python/pyproject.toml name REGEX "^name = " LIMIT_COUNT 1)
string(REGEX REPLACE "^name = \"(.*)\"$" "\\1" name "${name}")
file(WRITE ${folder}/METADATA "Metadata-Version: 2.1\nName: ${name}\nVersion: ${PROJECT_VERSION}\n")
string(REPLACE - _ name ${name})
install(FILES ${folder}/METADATA DESTINATION ${python}/${name}-${PROJECT_VERSION}.dist-info COMPONENT python3 EXCLUDE_FROM_ALL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME warren)
set(CPACK_PACKAGE_VENDOR "The Warren authors")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/debian/finish.cmake)
set(CPACK_WARREN_CHANGELOGS ${PROJECT_BINARY_DIR}/debian)  # written by scripts/package
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_VERSION ${WARREN_DEBIAN_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE ${WARREN_DEBIAN_REVISION})
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)

# warren_debian_package(<component> <package> <section> SUMMARY ... TEXT ... [DEPENDS ...] [RECOMMENDS ...] [SUGGESTS ...])
macro(warren_debian_package component package section)
  cmake_parse_arguments(ARG "" "SUMMARY;TEXT" "DEPENDS;RECOMMENDS;SUGGESTS" ${ARGN})
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${ARG_SUMMARY}\n${ARG_TEXT}")
  foreach(kind DEPENDS RECOMMENDS SUGGESTS)
    list(JOIN ARG_${kind} ", " CPACK_DEBIAN_${upper}_PACKAGE_${kind})
  endforeach()
endmacro()
set(rabit_library librabit${soversion})
set(this "(= ${whole_version})")
warren_debian_package(programs warren science
  SUMMARY "start distributed jobs of XGBoost, LightGBM, PyTorch and rabit"
  TEXT "Warren runs a training program on several machines at once: on this one,
over ssh, under MPI, Slurm, Grid Engine or Kubernetes. It starts the
processes, tells them how to find each other, watches them, and starts again
those that fail.
.
This package has the launcher dmlc-submit, the tracker alone (rabit-
tracker), what looks into data sets (rabit-data), and programs that train
over it: xgb-train (XGBoost) and histgbt."
  DEPENDS "${rabit_library} ${this}" SUGGESTS "python3-warren ${this}" openssh-client rsync libssl3)
warren_debian_package(libraries ${rabit_library} libs
  SUMMARY "allreduce, broadcast and checkpoints for programs of many processes"
  TEXT "An engine for collective communication with the API of rabit, in C++ and C,
over shared memory and TCP. Results have the same bits whatever the
algorithm and the layout of hosts. Programs go on when one of their
processes fails and is started again.
.
This package has the shared libraries, among them librabit_xgboost, which
takes the place of the communication inside XGBoost."
  SUGGESTS libssl3)
warren_debian_package(development librabit-dev libdevel
  SUMMARY "allreduce, broadcast and checkpoints (development files)"
  TEXT "An engine for collective communication with the API of rabit, in C++ and C,
over shared memory and TCP.
.
This package has the headers, the static libraries, the CMake package warren
and files for pkg-config. The libraries that warren::tracker and
warren::data need are recommended, not needed for rabit programs."
  DEPENDS "${rabit_library} ${this}" libdmlc-dev
  RECOMMENDS libboost-dev libfmt-dev libspdlog-dev zlib1g-dev libbz2-dev liblzma-dev libzstd-dev libxxhash-dev)
warren_debian_package(python3 python3-warren python
  SUMMARY "distributed training with XGBoost, LightGBM and PyTorch (Python 3)"
  TEXT "Warren for Python: the rabit API, XGBoost, LightGBM and torch.distributed
over the engine of Warren, in jobs that dmlc-submit starts; collectives on
NumPy arrays; a reader of training data.
.
This package has the module warren and the program warren, which has the
launcher, a doctor of clusters and a benchmark under one name."
  DEPENDS "warren ${this}" "${rabit_library} ${this}" python3:any python3-numpy
  SUGGESTS python3-xgboost python3-torch python3-sklearn)
# One package for each MPI, so that users only get an MPI that they asked for.
foreach(mpi openmpi mpich)
  if(TARGET rabit_mpi_${mpi})
    string(REPLACE openmpi "Open MPI" title ${mpi})
    string(REPLACE mpich MPICH title "${title}")
    list(APPEND CPACK_COMPONENTS_ALL ${mpi})
    warren_debian_package(${mpi} librabit-${mpi} libs
      SUMMARY "allreduce, broadcast and checkpoints (plugin for ${title})"
      TEXT "An engine for collective communication with the API of rabit, in C++ and C.
.
This package has the plugin by which it communicates over ${title}
(WARREN_ENGINE=mpi); dmlc-submit --cluster mpi does without."
      DEPENDS "${rabit_library} ${this}")
  endif()
endforeach()

set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(source ${PROJECT_SOURCE_DIR}/packaging/debian)
set(CPACK_DEBIAN_LIBRARIES_PACKAGE_CONTROL_EXTRA ${source}/triggers)
set(CPACK_DEBIAN_PYTHON3_PACKAGE_CONTROL_EXTRA ${source}/postinst ${source}/prerm)
include(CPack)
