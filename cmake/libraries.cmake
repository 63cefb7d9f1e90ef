# SPDX-License-Identifier: Apache-2.0
# mk_link_library(TARGET HEADER LIBRARY PACKAGE NEEDED_BY OTHERWISE): links a target with a library, which has this
# header and is in this package of Debian; without it the message names both, what needs it, and what to do otherwise.
function(mk_link_library target header library package needed_by otherwise)
    string(MAKE_C_IDENTIFIER "MK_${library}_${header}" headers)
    find_path(${headers} ${header})
    find_library(MK_${library}_LIBRARY ${library})
    if(NOT ${headers} OR NOT MK_${library}_LIBRARY)
        message(FATAL_ERROR "${needed_by} needs <${header}> and lib${library}: install ${package} (its name in "
            "Debian), or ${otherwise}")
    endif()
    mark_as_advanced(${headers} MK_${library}_LIBRARY)
    target_include_directories(${target} PRIVATE ${${headers}})
    target_link_libraries(${target} PRIVATE ${MK_${library}_LIBRARY})
endfunction()
