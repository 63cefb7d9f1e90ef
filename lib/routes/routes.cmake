# SPDX-License-Identifier: Apache-2.0
# The tree of routes: in libmonkey for programs that embed the server, and linked into the framework.
add_library(monkey-routes STATIC ${CMAKE_CURRENT_LIST_DIR}/routes.c)
target_include_directories(monkey-routes PUBLIC ${CMAKE_SOURCE_DIR}/include)
