# SPDX-License-Identifier: Apache-2.0
# Cookies: in libmonkey for programs that embed the server, and linked into the plugins that use them.
add_library(monkey-cookie STATIC ${CMAKE_CURRENT_LIST_DIR}/cookie.c)
target_include_directories(monkey-cookie PUBLIC ${CMAKE_SOURCE_DIR}/include)
