# SPDX-License-Identifier: Apache-2.0
# The page of the plugin cache is part of the module.
set(page ${CMAKE_CURRENT_LIST_DIR}/page)
mk_embed_files(cache
    page "." text/html ${page}/page.html
    script page.js text/javascript ${page}/page.js
    style page.css text/css ${page}/page.css)
