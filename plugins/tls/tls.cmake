# SPDX-License-Identifier: Apache-2.0
# The libraries of the plugin tls, of OpenSSL 3; nothing else is linked with them.
set(otherwise "leave the plugin out of MK_MODULES")
mk_link_library(monkey-tls openssl/ssl.h ssl libssl-dev "the plugin tls" "${otherwise}")
mk_link_library(monkey-tls openssl/evp.h crypto libssl-dev "the plugin tls" "${otherwise}")
