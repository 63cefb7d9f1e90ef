# SPDX-License-Identifier: Apache-2.0
# `wr` (docs/internals/wr.md): the load generator, the limit server, and the program in Python.
file(GLOB MK_WR_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/wr/load/*.c)
list(REMOVE_ITEM MK_WR_SOURCES ${CMAKE_SOURCE_DIR}/tools/wr/load/main.c) # the rest is tested apart

add_library(wr-load-parts OBJECT ${MK_WR_SOURCES})
target_include_directories(wr-load-parts PRIVATE include lib/core ${CMAKE_BINARY_DIR}/gen
    $<TARGET_PROPERTY:wr-load,INCLUDE_DIRECTORIES>)
add_executable(wr-load tools/wr/load/main.c lib/kit/json/json.c
    $<TARGET_OBJECTS:wr-load-parts> ${MK_OBJECTS} ${MK_RESPONSE_PARSER})
target_include_directories(wr-load PRIVATE include lib/core ${CMAKE_BINARY_DIR}/gen)
target_link_libraries(wr-load PRIVATE m Threads::Threads)
mk_link_runtime(wr-load)
set(otherwise "build without wr (-D MK_WR=OFF)")
mk_link_library(wr-load zlib.h z zlib1g-dev wr-load "${otherwise}")
mk_link_library(wr-load openssl/ssl.h ssl libssl-dev wr-load "${otherwise}")
mk_link_library(wr-load openssl/evp.h crypto libssl-dev wr-load "${otherwise}")

add_executable(wr-limit tools/wr/limit/limit.c)
mk_link_runtime(wr-limit)
install(TARGETS wr-load wr-limit)

# bin/wr of the build runs from the checkout, since the program finds its package next to the file that a link leads to;
# that of an installation looks in share/monkey/wr.
file(MAKE_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/tools/wr/wr ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/wr SYMBOLIC)
install(PROGRAMS tools/wr/wr TYPE BIN)
install(DIRECTORY tools/wr/watch_resources tools/wr/data DESTINATION ${CMAKE_INSTALL_DATADIR}/monkey/wr OPTIONAL
    PATTERN "__pycache__" EXCLUDE)
install(FILES dist/wr.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES dist/completions/wr.bash DESTINATION ${MK_COMPLETIONS} RENAME wr)
