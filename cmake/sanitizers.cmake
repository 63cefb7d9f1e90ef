# SPDX-License-Identifier: Apache-2.0
# What -fsanitize= needs of compiler and linker.
include(CheckCSourceCompiles)

set(MK_HAS_ASAN 0)
set(MK_HAS_MSAN 0)
set(MK_HAS_TSAN 0)
if(MK_SANITIZE MATCHES address)
    set(MK_HAS_ASAN 1)
elseif(MK_SANITIZE MATCHES memory)
    set(MK_HAS_MSAN 1)
elseif(MK_SANITIZE MATCHES thread)
    set(MK_HAS_TSAN 1)
endif()
add_compile_definitions(MK_HAS_ASAN=${MK_HAS_ASAN} MK_HAS_MSAN=${MK_HAS_MSAN})

set(sanitize -fsanitize=${MK_SANITIZE})
if(MK_SANITIZE)
    add_compile_options(${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()

# As clang does by itself, gcc links the runtime of AddressSanitizer into the programs that tests start by thousands; a
# plugin takes that of its program. A server starts and ends in 17 ms of CPU instead of 23: the shared objects of ASan
# and UBSan have tables of 4 MB each, which LeakSanitizer reads in each process.
if(MK_HAS_ASAN AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    set(CMAKE_REQUIRED_FLAGS "${sanitize} -static-libasan -static-libubsan")
    check_c_source_compiles("int main(void) { return 0; }" MK_STATIC_ASAN)
    unset(CMAKE_REQUIRED_FLAGS)
endif()
if(MK_STATIC_ASAN)
    add_link_options($<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>>:${sanitize}>)
elseif(MK_SANITIZE)
    add_link_options(${sanitize})
endif()

# With -rdynamic, a plugin finds every function of the runtime; a program at a fixed address is not relocated when it
# starts.
function(mk_link_runtime program)
    if(MK_STATIC_ASAN)
        target_link_options(${program} PRIVATE -static-libasan -static-libubsan -rdynamic -Wl,--no-pie)
    endif()
endfunction()
