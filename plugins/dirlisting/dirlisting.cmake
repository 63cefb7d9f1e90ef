# SPDX-License-Identifier: Apache-2.0
# The headers of libarchive, which the plugin opens when a host enables archives; it is not linked.
find_path(ARCHIVE_INCLUDE_DIR archive.h)
if(NOT ARCHIVE_INCLUDE_DIR)
    message(FATAL_ERROR "the plugin dirlisting needs <archive.h>: install libarchive-dev (its name in Debian), or "
        "leave the plugin out with -DMK_MODULES=")
endif()
mark_as_advanced(ARCHIVE_INCLUDE_DIR)
target_include_directories(monkey-dirlisting PRIVATE ${ARCHIVE_INCLUDE_DIR})
mk_link_library(monkey-dirlisting sha256.h md libmd-dev "the plugin dirlisting" "leave the plugin out of MK_MODULES")
