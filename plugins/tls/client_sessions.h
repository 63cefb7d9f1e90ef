// SPDX-License-Identifier: Apache-2.0
/*
 * The sessions of an SSL_CTX for connections to a server, which later connections resume, in all threads. They live as
 * long as the SSL_CTX. When the files of a client change, it gets another SSL_CTX: a session is resumed only under the
 * authorities that it was verified with.
 */
#ifndef TLS_CLIENT_SESSIONS_H
#define TLS_CLIENT_SESSIONS_H

#include <openssl/ssl.h>

/* Sessions for new connections; the oldest one is dropped for a newer one. A session has the server's certificates. */
enum { CLIENT_SESSIONS_MAX = 16 };

/* Adds the sessions to an SSL_CTX, which frees them. Returns 0 or -ENOMEM. */
int client_sessions_add(SSL_CTX *ctx);
/* Resumes the newest session on a new connection, if there is one. Each is used once, for the sake of TLS 1.3. */
void client_sessions_resume(SSL *ssl);
/* Keeps the session of a connection whose handshake is done, if that has resumed one of TLS 1.2. */
void client_sessions_keep(SSL *ssl);

#endif
