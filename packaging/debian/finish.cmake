# Run by CPack after the install rules and before it makes the packages (CPACK_PRE_BUILD_SCRIPTS). Does what Debian's policy requires of
# every package but `cmake --install` does not do.
file(GLOB folders ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
find_program(strip strip REQUIRED)
find_program(gzip gzip REQUIRED)
foreach(folder IN LISTS folders)
  get_filename_component(component ${folder} NAME)
  string(TOUPPER ${component} component)
  set(doc ${folder}/usr/share/doc/${CPACK_DEBIAN_${component}_PACKAGE_NAME})
  # Debian calls the license file `copyright`, and its zsh looks for completions in another folder.
  file(REMOVE ${folder}/usr/share/doc/warren/LICENSE)
  if(IS_DIRECTORY ${folder}/usr/share/zsh/site-functions)
    file(RENAME ${folder}/usr/share/zsh/site-functions ${folder}/usr/share/zsh/vendor-completions)
  endif()
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${doc} FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(COPY ${CPACK_WARREN_CHANGELOGS}/changelog ${CPACK_WARREN_CHANGELOGS}/changelog.Debian DESTINATION ${doc})
  file(GLOB pages ${doc}/changelog* ${folder}/usr/share/man/man1/*)
  execute_process(COMMAND ${gzip} -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
  file(GLOB_RECURSE archives ${folder}/usr/lib/*.a)
  if(archives)
    execute_process(COMMAND ${strip} --strip-debug --enable-deterministic-archives
      --remove-section=.comment --remove-section=.note ${archives} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
