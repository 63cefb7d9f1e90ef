# SPDX-License-Identifier: Apache-2.0
# `dudac` (docs/guide/dudac.md), a program in Python. bin/dudac of the build runs from the checkout, since the program
# finds its package next to the file that a link leads to; that of an installation looks in share/monkey/dudac.
file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/tools/dudac/start.py ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/dudac SYMBOLIC)
install(PROGRAMS tools/dudac/start.py TYPE BIN RENAME dudac)
install(DIRECTORY tools/dudac/dudac DESTINATION ${CMAKE_INSTALL_DATADIR}/monkey/dudac PATTERN "__pycache__" EXCLUDE)
install(FILES dist/dudac.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES dist/completions/dudac.bash DESTINATION ${MK_COMPLETIONS} RENAME dudac)
