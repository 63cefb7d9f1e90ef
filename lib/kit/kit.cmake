# SPDX-License-Identifier: Apache-2.0
# What only loaded plugins link: one archive, of which a plugin carries what it calls. Its symbols are hidden there, so
# that a plugin calls its own copy. Programs that embed the server find cookies and routes in libmonkey.
set(sources client_table/client_table.c cookie/cookie.c counter_table/counter_table.c embedded/embedded.c
    event_stream/event_stream.c hash_table/hash_table.c header_line/header_line.c json/json.c
    local_client/local_client.c open_file/open_file.c request_job/request_job.c routes/routes.c)
set(folders backend_stats cgi child fastcgi gateway http_client log_writer source spool status_set store target threads
    upstream variables via watched when)
if(MK_WEBSOCKET)
    list(APPEND folders websocket)
endif()
foreach(folder IN LISTS folders)
    file(GLOB found RELATIVE ${CMAKE_CURRENT_LIST_DIR} CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/${folder}/*.c)
    list(APPEND sources ${found})
endforeach()
list(TRANSFORM sources PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(APPEND sources ${MK_CORE_FOR_KIT})
add_library(monkey-kit STATIC ${sources})
target_include_directories(monkey-kit PUBLIC ${CMAKE_SOURCE_DIR}/include)
set_property(SOURCE ${MK_CORE_FOR_KIT} APPEND PROPERTY INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/lib/core)
target_compile_definitions(monkey-kit PRIVATE MK_API=)
if(MK_WEBSOCKET)
    mk_link_library(monkey-kit zlib.h z zlib1g-dev "the WebSocket library" "build without it (-D MK_WEBSOCKET=OFF)")
    set(MK_KIT_LIBS -Wl,--push-state,--as-needed,-lz,--pop-state) # for those who use no WebSockets
endif()
