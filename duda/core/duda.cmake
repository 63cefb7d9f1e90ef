# SPDX-License-Identifier: Apache-2.0
# The plugin duda, the framework for web services. Once opened it stays in memory: threads of services, which end when
# they want, return into it.
target_compile_definitions(monkey-duda PRIVATE DUDA_FRAMEWORK)
target_include_directories(monkey-duda PRIVATE duda/core)
# Only here, because it would compile everything else again.
set_property(SOURCE duda/core/dthread/context.c duda/core/dthread/stack.c APPEND PROPERTY
    COMPILE_DEFINITIONS MK_HAS_TSAN=${MK_HAS_TSAN})
target_link_options(monkey-duda PRIVATE -Wl,-z,nodelete)
# Stack traces of crashes go through the framework to the service that has called it. With LTO the linker compiles.
target_compile_options(monkey-duda PRIVATE -fasynchronous-unwind-tables)
target_link_options(monkey-duda PRIVATE -fasynchronous-unwind-tables)
# The handler of crashes has its own unwinder (crash.c).
target_link_options(monkey-duda PRIVATE -static-libgcc)
# What a request does not pass is compiled for size: less of the file is in memory.
set(frequent "body|counts|dispatch|gc|lifetime|output|param|pairs|request|request_calls|request_pool|response|router")
string(APPEND frequent "|router_calls|tunnel|urlencoded")
set(rest ${sources})
list(FILTER rest EXCLUDE REGEX "/(${frequent})\\.c$")
set_property(SOURCE ${rest} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release>:-Os>)
target_link_options(monkey-duda PRIVATE -Wl,-z,pack-relative-relocs)
# Names and lines of functions in stack traces: libbacktrace comes with gcc. Its header is copied out of a folder of
# gcc's that has headers which clang must not find; and the archive, to give it another dl_iterate_phdr() (names.c).
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libbacktrace.a
    OUTPUT_VARIABLE libbacktrace OUTPUT_STRIP_TRAILING_WHITESPACE)
if(EXISTS "${libbacktrace}")
    cmake_path(GET libbacktrace PARENT_PATH folder_of_gcc)
    set(copy ${CMAKE_BINARY_DIR}/gen/libbacktrace)
    configure_file(${folder_of_gcc}/include/backtrace.h ${copy}/backtrace.h COPYONLY)
    execute_process(COMMAND ${CMAKE_OBJCOPY} --redefine-sym dl_iterate_phdr=names_iterate_program
        ${libbacktrace} ${copy}/libbacktrace.a COMMAND_ERROR_IS_FATAL ANY)
    set_property(SOURCE duda/core/crash/names.c APPEND PROPERTY INCLUDE_DIRECTORIES ${copy})
    target_link_libraries(monkey-duda PRIVATE ${copy}/libbacktrace.a)
    target_link_options(monkey-duda PRIVATE -Wl,--exclude-libs,libbacktrace.a)
    set_property(SOURCE duda/core/crash/names_none.c PROPERTY HEADER_FILE_ONLY ON)
else()
    set_property(SOURCE duda/core/crash/names.c PROPERTY HEADER_FILE_ONLY ON)
endif()
