# SPDX-License-Identifier: Apache-2.0
# The themes of the plugin dirlisting lie next to the plugins, in the build as in an installation.
file(GLOB_RECURSE themes RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.theme)
foreach(file IN LISTS themes)
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${file} ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey/themes/${file} COPYONLY)
endforeach()
install(DIRECTORY ${CMAKE_CURRENT_LIST_DIR}/ DESTINATION lib/monkey/themes FILES_MATCHING PATTERN *.theme)
