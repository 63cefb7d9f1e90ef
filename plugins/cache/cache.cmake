# SPDX-License-Identifier: Apache-2.0
# The page of the plugin cache is part of the module.
set(page ${CMAKE_CURRENT_LIST_DIR}/page)
mk_embed_files(cache
    page "." text/html ${page}/page.html
    script page.js text/javascript ${page}/page.js
    style page.css text/css ${page}/page.css)

# What no request for a file calls is compiled for size: the pages of the module count as memory of an idle server.
set(seldom access answer api call commands counters directives folder_walk path_list places preload scan stats sweep
    warm)
list(TRANSFORM seldom PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM seldom APPEND .c)
if(CMAKE_BUILD_TYPE STREQUAL Release)
    set_source_files_properties(${seldom} PROPERTIES COMPILE_OPTIONS -Os)
endif()
