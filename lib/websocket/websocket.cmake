# SPDX-License-Identifier: Apache-2.0
# The WebSocket library: linked into the plugins and packages that speak the protocol, not into the server.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_library(monkey-websocket STATIC ${sources})
target_include_directories(monkey-websocket PUBLIC ${CMAKE_SOURCE_DIR}/include)
