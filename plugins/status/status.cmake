# SPDX-License-Identifier: Apache-2.0
# The live page of the plugin status is part of the module, with dygraphs, which draws its charts.
find_file(DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs /usr/share/nodejs/dygraphs/dist NO_DEFAULT_PATH)
if(NOT DYGRAPHS)
    message(FATAL_ERROR "the plugin status needs dygraph.min.js: install libjs-dygraphs (its name in Debian), set "
        "-DDYGRAPHS=/path/to/dygraph.min.js, or leave the plugin out of MK_MODULES")
endif()
mark_as_advanced(DYGRAPHS)
set(page ${CMAKE_CURRENT_LIST_DIR}/page)
mk_embed_files(status
    page "." text/html ${page}/page.html
    script page.js text/javascript ${page}/page.js
    style page.css text/css ${page}/page.css
    dygraphs dygraph.js text/javascript ${DYGRAPHS})
target_link_libraries(monkey-status PRIVATE m)
