# SPDX-License-Identifier: Apache-2.0
# The preset msan. MemorySanitizer takes what a library writes that was compiled without it for uninitialized. These
# unit tests and fuzz targets, as patterns of their file names, call such a library:
set(MK_MSAN_WITHOUT
    "^core/base/regex_" "^plugins/logger/filter_" "^plugins/redirect/target_" "^kit/(source|when)/"
    "^core/server/generation/path_limits_" # libpcre2
    "^core/http/h2/nghttp2_" "^(h2|hpack)_nghttp2_" # libnghttp2
    "^plugins/tls/" "^tls_"           # libssl
    "^kit/websocket/(broadcast|codecs|deflate)_" "^ws_(deflate|session)_" # zlib
    "^plugins/compress/"              # zlib, libbrotli, libzstd
    "^duda/core/crash/names_" # libbacktrace
    "^duda/packages/json/" "^json_"   # libcjson
    "^duda/packages/sqlite/(open|sqlite)_" # libsqlite3
    "^duda/packages/redis/" "^redis_" # libhiredis
    "^duda/packages/sha"              # libcrypto
    "^plugins/auth/(bearer|hash|jws|keys|login|strict_json|token_)" # libcrypt, libcrypto, libjansson
    "^plugins/auth/text_cache_"       # libcrypto
    "^auth_jw"                        # the same
    "^bin/shell/table_" "^shell_"     # libjansson
    "^plugins/upstream/(lookup|names)_" # libcares
    "^plugins/dirlisting/(tar|theme|walk)") # libmd, libarchive
list(JOIN MK_MSAN_WITHOUT "|" MK_MSAN_WITHOUT)

add_library(msan-calls OBJECT ${CMAKE_CURRENT_LIST_DIR}/calls.c ${CMAKE_CURRENT_LIST_DIR}/nghttp2.c)
target_compile_options(msan-calls PRIVATE -Wno-missing-prototypes)
set(MK_MSAN_OBJECTS $<TARGET_OBJECTS:msan-calls>)

# Fuzz targets run as tests here, over their seeds and for a moment longer.
function(mk_add_msan_fuzz_test name)
    set(seeds ${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name})
    set(learnt ${CMAKE_BINARY_DIR}/corpus/${name})
    file(MAKE_DIRECTORY ${learnt} ${CMAKE_BINARY_DIR}/findings)
    if(NOT IS_DIRECTORY ${seeds})
        set(seeds "")
    endif()
    add_test(NAME fuzz-${name} COMMAND fuzz-${name} -max_total_time=2 -timeout=10 -rss_limit_mb=0
        -artifact_prefix=${CMAKE_BINARY_DIR}/findings/${name}- ${learnt} ${seeds})
    set_tests_properties(fuzz-${name} PROPERTIES TIMEOUT 120)
endfunction()
