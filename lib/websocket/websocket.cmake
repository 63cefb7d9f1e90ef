# SPDX-License-Identifier: Apache-2.0
# The WebSocket library: linked into the plugins and packages that speak the protocol, not into the server.
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.c)
add_library(monkey-websocket STATIC ${sources})
target_include_directories(monkey-websocket PUBLIC ${CMAKE_SOURCE_DIR}/include)
mk_link_library(monkey-websocket zlib.h z zlib1g-dev "the WebSocket library" "build without it (-D MK_WEBSOCKET=OFF)")
