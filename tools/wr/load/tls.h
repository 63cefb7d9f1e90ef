// SPDX-License-Identifier: Apache-2.0
/*
 * TLS of a client, with OpenSSL, on a socket that never blocks. Knows whether the socket has been read empty, so that a
 * connection needs no further recv(2) to find that out.
 */
#ifndef WR_LOAD_TLS_H
#define WR_LOAD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ssl_ctx_st;
struct ssl_session_st;
struct tls;

/* Of the process; `ca`: a file of certificates, NULL: those of the system. Returns NULL with a phrase. */
struct ssl_ctx_st *tls_open(const char *ca, bool insecure, const char **ret_error);
void tls_close(struct ssl_ctx_st *ctx);

/*
 * A connection's end to a server of that name. `session`: of the thread; it is offered, and replaced by each ticket
 * that a server sends; NULL: every handshake is a full one. Returns NULL when memory is exhausted.
 */
struct tls *tls_new(struct ssl_ctx_st *ctx, int fd, const char *host, struct ssl_session_st **session);
void tls_free(struct tls *t);
void tls_free_session(struct ssl_session_st *session);

/* Returns 0, -EAGAIN, or -EPROTO with a phrase. */
int tls_do_handshake(struct tls *t, const char **ret_error);
bool tls_is_resumed(const struct tls *t);

/* Return the number of bytes, 0 (the end), -EAGAIN, or another -errno. */
ssize_t tls_read(struct tls *t, void *to, size_t size);
ssize_t tls_write(struct tls *t, const void *from, size_t size);
/* Returns whether nothing is left to be read, here and in the socket. */
bool tls_is_drained(const struct tls *t);

#endif
