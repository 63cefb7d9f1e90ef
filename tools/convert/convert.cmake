# SPDX-License-Identifier: Apache-2.0
# The program behind `monkey convert` (docs/guide/migrate.md), in Python and in the folder of the plugins. That of the
# build runs from the checkout, since it finds its package next to the file that a link leads to; that of an
# installation looks in share/monkey/convert.
file(MAKE_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/tools/convert/start.py ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey/monkey-convert
    SYMBOLIC)
install(PROGRAMS tools/convert/start.py DESTINATION lib/monkey RENAME monkey-convert)
install(DIRECTORY tools/convert/convert DESTINATION ${CMAKE_INSTALL_DATADIR}/monkey/convert
    PATTERN "__pycache__" EXCLUDE)
