// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps sessions of connections to a server (client_sessions.h): a stack, with a lock that is held for a few
 * assignments.
 */
#include "client_sessions.h"

#include <openssl/err.h>
#include <openssl/x509.h>

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

struct sessions {
    pthread_mutex_t lock;
    unsigned n;
    SSL_SESSION *items[CLIENT_SESSIONS_MAX]; /* the newest one last */
};

static pthread_once_t index_made = PTHREAD_ONCE_INIT;
static int sessions_index = -1;

static void free_sessions(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long number, void *pointer)
{
    struct sessions *sessions = data;
    (void)parent, (void)all, (void)index, (void)number, (void)pointer;
    if (!sessions)
        return;
    for (unsigned i = 0; i < sessions->n; i++)
        SSL_SESSION_free(sessions->items[i]);
    pthread_mutex_destroy(&sessions->lock);
    OPENSSL_free(sessions);
}

static void make_index(void)
{
    sessions_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_sessions);
}

static struct sessions *get_sessions(const SSL *ssl)
{
    return SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), sessions_index);
}

/* Adds a copy: libssl changes the session of a connection, which may be in another thread than the next user. */
static void push_session(struct sessions *sessions, const SSL_SESSION *session)
{
    SSL_SESSION *dropped = NULL, *copy = SSL_SESSION_dup(session);
    if (!copy) {
        ERR_clear_error();
        return;
    }
    pthread_mutex_lock(&sessions->lock);
    assert(sessions->n <= CLIENT_SESSIONS_MAX);
    if (sessions->n == CLIENT_SESSIONS_MAX) {
        dropped = sessions->items[0];
        memmove(sessions->items, sessions->items + 1, --sessions->n * sizeof(sessions->items[0]));
    }
    sessions->items[sessions->n++] = copy;
    pthread_mutex_unlock(&sessions->lock);
    SSL_SESSION_free(dropped);
}

static SSL_SESSION *pop_session(struct sessions *sessions)
{
    pthread_mutex_lock(&sessions->lock);
    SSL_SESSION *session = sessions->n ? sessions->items[--sessions->n] : NULL;
    pthread_mutex_unlock(&sessions->lock);
    return session;
}

/* The callback for a new session: with TLS 1.3 for each ticket. Returns 0: keeps no reference. */
static int save_session(SSL *ssl, SSL_SESSION *session)
{
    if (SSL_SESSION_is_resumable(session))
        push_session(get_sessions(ssl), session);
    return 0;
}

int client_sessions_add(SSL_CTX *ctx)
{
    struct sessions *sessions = OPENSSL_zalloc(sizeof(*sessions));
    pthread_once(&index_made, make_index);
    if (!sessions || SSL_CTX_set_ex_data(ctx, sessions_index, sessions) != 1) {
        OPENSSL_free(sessions);
        return -ENOMEM;
    }
    pthread_mutex_init(&sessions->lock, NULL);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, save_session);
    return 0;
}

/*
 * A resumed handshake does not verify the certificate again: one that is not valid any more needs a full handshake,
 * else renewed tickets would keep it valid forever.
 */
static bool is_usable(const SSL_SESSION *session)
{
    const X509 *server = SSL_SESSION_get0_peer((SSL_SESSION *)(uintptr_t)session);
    return server && X509_cmp_timeframe(NULL, X509_get0_notBefore(server), X509_get0_notAfter(server)) == 0;
}

void client_sessions_resume(SSL *ssl)
{
    SSL_SESSION *session = pop_session(get_sessions(ssl));
    if (session && is_usable(session) && SSL_set_session(ssl, session) != 1)
        ERR_clear_error(); /* a full handshake follows */
    SSL_SESSION_free(session);
}

void client_sessions_keep(SSL *ssl)
{
    if (SSL_session_reused(ssl) == 1 && SSL_version(ssl) < TLS1_3_VERSION)
        push_session(get_sessions(ssl), SSL_get0_session(ssl));
}
