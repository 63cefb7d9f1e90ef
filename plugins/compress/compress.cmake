# SPDX-License-Identifier: Apache-2.0
# The libraries of the plugin compress; nothing else is linked with them.
foreach(row IN ITEMS "zlib.h;z;zlib1g-dev" "brotli/encode.h;brotlienc;libbrotli-dev" "zstd.h;zstd;libzstd-dev")
    list(GET row 0 header)
    list(GET row 1 library)
    list(GET row 2 package)
    find_path(MK_COMPRESS_${library}_HEADERS ${header})
    find_library(MK_COMPRESS_${library} ${library})
    if(NOT MK_COMPRESS_${library}_HEADERS OR NOT MK_COMPRESS_${library})
        message(FATAL_ERROR "the plugin compress needs <${header}> and lib${library}: install ${package} (its name in "
            "Debian), or leave the plugin out with -DMK_MODULES=")
    endif()
    mark_as_advanced(MK_COMPRESS_${library}_HEADERS MK_COMPRESS_${library})
    target_include_directories(monkey-compress PRIVATE ${MK_COMPRESS_${library}_HEADERS})
    target_link_libraries(monkey-compress PRIVATE ${MK_COMPRESS_${library}})
endforeach()
