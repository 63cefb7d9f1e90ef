# SPDX-License-Identifier: Apache-2.0
# A table of what plugins keep between requests: linked into the plugins that use it, not into the server.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_library(monkey-store STATIC ${sources})
target_include_directories(monkey-store PUBLIC ${CMAKE_SOURCE_DIR}/include)
