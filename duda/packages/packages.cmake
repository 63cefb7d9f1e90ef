# SPDX-License-Identifier: Apache-2.0
# The packages of the framework (docs/guide/write-services.md): shared objects in lib/monkey/packages.
function(mk_add_package name)
    list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/duda/packages/)
    add_library(duda-${name} MODULE ${ARGN})
    set_target_properties(duda-${name} PROPERTIES PREFIX "" SUFFIX ".dpkg" OUTPUT_NAME ${name}
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/monkey/packages)
    target_include_directories(duda-${name} PRIVATE ${CMAKE_SOURCE_DIR}/include)
    # Lines of the log end with the place of the service's call, which is behind the package on the stack.
    target_compile_options(duda-${name} PRIVATE -fasynchronous-unwind-tables)
    target_link_options(duda-${name} PRIVATE -fasynchronous-unwind-tables)
    target_link_options(duda-${name} PRIVATE -Wl,-z,pack-relative-relocs)
    install(TARGETS duda-${name} LIBRARY DESTINATION lib/monkey/packages)
endfunction()

function(mk_link_package name header library debian)
    mk_link_library(duda-${name} ${header} ${library} ${debian} "the package ${name} of web services"
        "leave it out of MK_PACKAGES")
endfunction()

foreach(name IN LISTS MK_PACKAGES)
    if(name STREQUAL "base64")
        mk_add_package(base64 base64/base64.c)
    elseif(name MATCHES "^sha(1|256)$")
        mk_add_package(${name} sha/${name}.c sha/digest.c)
        mk_link_package(${name} openssl/evp.h crypto libssl-dev)
    elseif(name STREQUAL "json")
        mk_add_package(json json/json.c json/print.c json/scan.c)
        mk_link_package(json cjson/cJSON.h cjson libcjson-dev)
    elseif(name STREQUAL "kv")
        mk_add_package(kv kv/store.c kv/old.c kv/table.c)
    elseif(name STREQUAL "sqlite")
        mk_add_package(sqlite sqlite/databases.c sqlite/calls.c sqlite/job.c sqlite/conn.c sqlite/open.c sqlite/rows.c
            sqlite/error.c sqlite/old.c)
        target_link_libraries(duda-sqlite PRIVATE monkey-kit)
        mk_link_package(sqlite sqlite3.h sqlite3 libsqlite3-dev)
    elseif(name STREQUAL "memcached")
        mk_add_package(memcached memcached/memcached.c memcached/calls.c memcached/conn.c memcached/hash.c
            memcached/pool.c memcached/protocol.c)
        target_link_libraries(duda-memcached PRIVATE monkey-kit)
    elseif(name STREQUAL "password")
        mk_add_package(password password/password.c password/compute.c)
        mk_link_package(password crypt.h crypt libcrypt-dev)
    elseif(name STREQUAL "redis")
        mk_add_package(redis redis/redis.c redis/calls.c redis/conn.c redis/format.c redis/old.c redis/printf.c
            redis/reader.c redis/sessions.c redis/subscribe.c)
        target_link_libraries(duda-redis PRIVATE monkey-kit)
        mk_link_package(redis hiredis/read.h hiredis libhiredis-dev)
    elseif(name STREQUAL "websocket")
        if(MK_WEBSOCKET)
            mk_add_package(websocket websocket/websocket.c websocket/accept.c websocket/calls.c websocket/channels.c
                websocket/conn.c websocket/connect.c websocket/origin.c)
            target_link_libraries(duda-websocket PRIVATE monkey-kit)
        endif()
    else()
        message(FATAL_ERROR "MK_PACKAGES: there is no package ${name}")
    endif()
endforeach()
