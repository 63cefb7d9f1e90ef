# SPDX-License-Identifier: Apache-2.0
# Where an installation has its files. Used when the build is configured and again when it is installed, since
# `cmake --install --prefix` may name another prefix. bin/monkey/config.c follows the same rule at run time.

# The directory of system configuration: /etc for the prefix /usr, else etc below the prefix.
function(mk_get_sysconfdir prefix dir result)
    string(REGEX REPLACE "/+$" "" prefix "${prefix}")
    if(IS_ABSOLUTE "${dir}")
        set(${result} "${dir}" PARENT_SCOPE)
    else()
        string(REGEX REPLACE "(^|/)usr$" "" prefix "${prefix}")
        set(${result} "${prefix}/${dir}" PARENT_SCOPE)
    endif()
endfunction()

function(mk_get_full_dir prefix dir result)
    string(REGEX REPLACE "/+$" "" prefix "${prefix}")
    if(IS_ABSOLUTE "${dir}")
        set(${result} "${dir}" PARENT_SCOPE)
    else()
        set(${result} "${prefix}/${dir}" PARENT_SCOPE)
    endif()
endfunction()
