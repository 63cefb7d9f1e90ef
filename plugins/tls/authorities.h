// SPDX-License-Identifier: Apache-2.0
/*
 * The authorities that connections to servers trust: those of a file, or of the system.
 */
#ifndef TLS_AUTHORITIES_H
#define TLS_AUTHORITIES_H

#include <monkey/base/buf.h>

#include <openssl/ssl.h>

/* Returns the system's file of authorities; NULL: there is none. The string is static. */
const char *authorities_find_system_file(void);
/*
 * Reads a PEM file. Stores of one file are shared, as long as it does not change: that of the system has 1 MB. Returns
 * NULL on an error, with a phrase about the file in `fault`. Any thread.
 */
X509_STORE *authorities_read(const char *path, struct mk_buf *fault);
/* Forgets the file that was read last; the SSL_CTXs keep their stores. */
void authorities_stop(void);

#endif
