# SPDX-License-Identifier: Apache-2.0
# The libraries of the plugin tls; nothing else is linked with them.
find_path(MK_TLS_HEADERS openssl/ssl.h)
find_library(MK_TLS_SSL ssl)
find_library(MK_TLS_CRYPTO crypto)
if(NOT MK_TLS_HEADERS OR NOT MK_TLS_SSL OR NOT MK_TLS_CRYPTO)
    message(FATAL_ERROR "the plugin tls needs <openssl/ssl.h>, libssl and libcrypto of OpenSSL 3: install libssl-dev "
        "(its name in Debian), or leave the plugin out of MK_MODULES")
endif()
mark_as_advanced(MK_TLS_HEADERS MK_TLS_SSL MK_TLS_CRYPTO)
target_include_directories(monkey-tls PRIVATE ${MK_TLS_HEADERS})
target_link_libraries(monkey-tls PRIVATE ${MK_TLS_SSL} ${MK_TLS_CRYPTO})
