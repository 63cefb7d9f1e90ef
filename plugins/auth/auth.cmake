# SPDX-License-Identifier: Apache-2.0
# The libraries of the plugin auth, and the program mk_passwd, which writes the files that it reads.
set(otherwise "leave the plugin out of MK_MODULES")
mk_link_library(monkey-auth crypt.h crypt libcrypt-dev "the plugin auth" "${otherwise}")
mk_link_library(monkey-auth openssl/evp.h crypto libssl-dev "the plugin auth" "${otherwise}")
mk_link_library(monkey-auth jansson.h jansson libjansson-dev "the plugin auth" "${otherwise}")

file(GLOB MK_PASSWD_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugins/auth/passwd/*.c)
add_executable(mk_passwd ${MK_PASSWD_SOURCES} plugins/auth/hash.c plugins/auth/htpasswd.c)
mk_link_library(mk_passwd crypt.h crypt libcrypt-dev mk_passwd "${otherwise}")
mk_link_library(mk_passwd openssl/evp.h crypto libssl-dev mk_passwd "${otherwise}")
target_link_libraries(mk_passwd PRIVATE monkey-static)
install(TARGETS mk_passwd)
install(FILES dist/mk_passwd.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
