# SPDX-License-Identifier: Apache-2.0
# Protection by compiler and linker. Each flag is checked first: compilers and machines differ in what they know.
# Builds with a sanitizer go without: it checks the same and more, and FORTIFY hides calls from it.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

# A third argument is a generator expression that is 1 in the configurations which get the flag.
function(mk_add_compile_flag variable flag)
    set(CMAKE_REQUIRED_FLAGS -Werror) # clang only warns of flags for other machines
    check_c_compiler_flag(${flag} ${variable})
    if(${variable} AND ARGC GREATER 2)
        add_compile_options($<${ARGV2}:${flag}>)
    elseif(${variable})
        add_compile_options(${flag})
    endif()
endfunction()

function(mk_add_link_flag variable flag)
    check_linker_flag(C ${flag} ${variable})
    if(${variable})
        add_link_options(${flag})
    endif()
endfunction()

# Needs optimisation, and a C library that knows the level.
function(mk_add_fortify configurations)
    set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -Werror")
    check_c_source_compiles("
        #include <string.h>
        #if __USE_FORTIFY_LEVEL < 3
        #error level 3 is unknown
        #endif
        int main(void) { return 0; }" MK_HAS_FORTIFY_3)
    set(level 2)
    if(MK_HAS_FORTIFY_3)
        set(level 3)
    endif()
    add_compile_options($<${configurations}:-U_FORTIFY_SOURCE> $<${configurations}:-D_FORTIFY_SOURCE=${level}>)
endfunction()

check_pie_supported(LANGUAGES C)
if(NOT MK_LEAN) # it pads segments to whole pages
    mk_add_link_flag(MK_HAS_SEPARATE_CODE -Wl,-z,separate-code)
else()
    mk_add_link_flag(MK_HAS_NO_SEPARATE_CODE -Wl,-z,noseparate-code)
endif()
mk_add_link_flag(MK_HAS_NOEXECSTACK -Wl,-z,noexecstack)
mk_add_compile_flag(MK_HAS_STACK_PROTECTOR -fstack-protector-strong)
if(NOT MK_SANITIZE)
    set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
    mk_add_fortify(${optimised})
    # in tests without optimisation valgrind finds what was never set
    if(NOT MK_LEAN) # 1.6 KB
        mk_add_compile_flag(MK_HAS_AUTO_VAR_INIT -ftrivial-auto-var-init=zero ${optimised})
    endif()
    mk_add_compile_flag(MK_HAS_STACK_CLASH -fstack-clash-protection)
    if(MK_LEAN) # no landing pads: 4 KB, which nothing checks as long as IBT is not claimed
        mk_add_compile_flag(MK_HAS_CF_PROTECTION -fcf-protection=return)
    else()
        mk_add_compile_flag(MK_HAS_CF_PROTECTION -fcf-protection)
    endif()
    mk_add_compile_flag(MK_HAS_BRANCH_PROTECTION -mbranch-protection=standard)
    if(MK_HAS_CF_PROTECTION)
        # Debian's start-up files of C programs lack the mark, though nothing in them changes a return address.
        # IBT is not claimed for them: their _start and _init begin without endbr64.
        mk_add_link_flag(MK_HAS_SHSTK -Wl,-z,shstk)
    endif()
endif()
