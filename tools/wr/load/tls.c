// SPDX-License-Identifier: Apache-2.0
/*
 * OpenSSL on a BIO of our own: recv(2) and send(2) that remember whether the socket had less than was asked for.
 */
#include "tls.h"

#include <errno.h>
#include <stdint.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <monkey/base/arena.h>

struct tls {
    SSL *ssl;
    int fd;
    int err; /* the last -errno of the socket */
    bool drained;
    SSL_SESSION **session;
};

/* ── the BIO ── */

static BIO_METHOD *method;

static int end_call(BIO *bio, ssize_t n, int retry)
{
    struct tls *t = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    if (n >= 0)
        return (int)n;
    t->err = -errno;
    if (errno == EAGAIN || errno == EINTR)
        BIO_set_flags(bio, retry | BIO_FLAGS_SHOULD_RETRY);
    return -1;
}

static int read_bio(BIO *bio, char *to, int size)
{
    struct tls *t = BIO_get_data(bio);
    ssize_t n = recv(t->fd, to, (size_t)size, 0);
    t->drained = n < size;
    return end_call(bio, n, BIO_FLAGS_READ);
}

static int write_bio(BIO *bio, const char *from, int size)
{
    struct tls *t = BIO_get_data(bio);
    return end_call(bio, send(t->fd, from, (size_t)size, MSG_NOSIGNAL), BIO_FLAGS_WRITE);
}

static long control_bio(BIO *bio, int command, long number, void *p)
{
    (void)bio;
    (void)number;
    (void)p;
    return command == BIO_CTRL_FLUSH;
}

static int open_bio(BIO *bio)
{
    BIO_set_init(bio, 1);
    return 1;
}

static bool make_method(void)
{
    method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    return method && BIO_meth_set_read(method, read_bio) && BIO_meth_set_write(method, write_bio) &&
           BIO_meth_set_ctrl(method, control_bio) && BIO_meth_set_create(method, open_bio);
}

/* ── the context ── */

/* Keeps the newest session of the thread. Returns 1: the reference is ours. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls *t = SSL_get_app_data(ssl);
    if (!t || !t->session)
        return 0;
    SSL_SESSION_free(*t->session);
    *t->session = session;
    return 1;
}

struct ssl_ctx_st *tls_open(const char *ca, bool insecure, const char **ret_error)
{
    static const unsigned char protocols[] = "\x08http/1.1";
    SSL_CTX *ctx = make_method() ? SSL_CTX_new(TLS_client_method()) : NULL;
    *ret_error = "OpenSSL cannot be initialized";
    if (!ctx)
        return NULL;
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_quiet_shutdown(ctx, 1);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    SSL_CTX_set_alpn_protos(ctx, protocols, sizeof(protocols) - 1);
    if (insecure)
        return ctx;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (ca ? SSL_CTX_load_verify_file(ctx, ca) : SSL_CTX_set_default_verify_paths(ctx))
        return ctx;
    *ret_error = "it has no certificates in PEM, or cannot be read";
    tls_close(ctx);
    return NULL;
}

void tls_close(struct ssl_ctx_st *ctx)
{
    SSL_CTX_free(ctx);
    BIO_meth_free(method);
    method = NULL;
}

/* ── connections ── */

/* Sets the name for SNI and for the check of the certificate; addresses are not sent. */
static bool set_name(SSL *ssl, const char *host)
{
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host))
        return true;
    void *name = (void *)(uintptr_t)host; /* SSL_set_tlsext_host_name(), whose cast clang does not accept */
    return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name) && SSL_set1_host(ssl, host);
}

struct tls *tls_new(struct ssl_ctx_st *ctx, int fd, const char *host, struct ssl_session_st **session)
{
    struct tls *t = mk_account_alloc(NULL, sizeof(*t));
    BIO *bio = BIO_new(method);
    SSL *ssl = SSL_new(ctx);
    if (!t || !bio || !ssl || !set_name(ssl, host)) {
        SSL_free(ssl);
        BIO_free(bio);
        if (t)
            mk_account_free(NULL, t, sizeof(*t));
        return NULL;
    }
    *t = (struct tls){.ssl = ssl, .fd = fd, .session = session};
    BIO_set_data(bio, t);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_app_data(ssl, t);
    SSL_set_connect_state(ssl);
    if (session && *session)
        SSL_set_session(ssl, *session);
    return t;
}

void tls_free(struct tls *t)
{
    SSL_shutdown(t->ssl); /* writes nothing, but a session that was not shut down is not resumed */
    SSL_free(t->ssl);
    ERR_clear_error();
    mk_account_free(NULL, t, sizeof(*t));
}

void tls_free_session(struct ssl_session_st *session)
{
    SSL_SESSION_free(session);
}

/* Returns -EAGAIN, 0 for the end, or another -errno. */
static int find_error(struct tls *t, int result)
{
    int what = SSL_get_error(t->ssl, result), err = t->err;
    bool is_end =
        what == SSL_ERROR_ZERO_RETURN || ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE)
        return -EAGAIN;
    if (is_end)
        return 0;
    return what == SSL_ERROR_SYSCALL && err ? err : -EPROTO;
}

int tls_do_handshake(struct tls *t, const char **ret_error)
{
    ERR_clear_error();
    t->err = 0;
    int result = SSL_do_handshake(t->ssl);
    if (result == 1)
        return 0;
    int err = find_error(t, result);
    if (err == -EAGAIN)
        return err;
    long verified = SSL_get_verify_result(t->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    if (verified != X509_V_OK)
        *ret_error = X509_verify_cert_error_string(verified);
    else if (err == 0)
        *ret_error = "the server closed the connection during the TLS handshake";
    else
        *ret_error = reason ? reason : strerror(-err);
    return -EPROTO;
}

bool tls_is_resumed(const struct tls *t)
{
    return SSL_session_reused(t->ssl);
}

ssize_t tls_read(struct tls *t, void *to, size_t size)
{
    ERR_clear_error();
    t->err = 0;
    int n = SSL_read(t->ssl, to, (int)size);
    return n > 0 ? n : find_error(t, n);
}

ssize_t tls_write(struct tls *t, const void *from, size_t size)
{
    ERR_clear_error();
    t->err = 0;
    int n = SSL_write(t->ssl, from, (int)size);
    int err = n > 0 ? n : find_error(t, n);
    return err == 0 ? -EPIPE : err;
}

bool tls_is_drained(const struct tls *t)
{
    return t->drained && !SSL_has_pending(t->ssl);
}
