# SPDX-License-Identifier: Apache-2.0
# Values made from files: linked into the plugins that watch files, not into the server.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_library(monkey-watched STATIC ${sources})
target_include_directories(monkey-watched PUBLIC ${CMAKE_SOURCE_DIR}/include)
