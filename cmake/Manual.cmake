# Manual pages and completions are made from what the programs say of themselves (scripts/make-manual), so they are made where the
# programs run and there is Python: without them an installation is whole, too.
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(Python3_Interpreter_FOUND AND NOT CMAKE_CROSSCOMPILING)
  set(manual ${PROJECT_BINARY_DIR}/manual)
  install(CODE "
    execute_process(COMMAND \"${Python3_EXECUTABLE}\" \"${PROJECT_SOURCE_DIR}/scripts/make-manual\" \"$<TARGET_FILE:fourfold>\" \"${manual}\"
                    RESULT_VARIABLE failed ERROR_VARIABLE why)
    if(failed)
      message(WARNING \"there are no manual pages and no completions (scripts/make-manual: \${why})\")
    endif()")
  install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} OPTIONAL)
  install(FILES ${manual}/fourfold.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME fourfold OPTIONAL)
  install(FILES ${manual}/_fourfold DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions OPTIONAL)
endif()
