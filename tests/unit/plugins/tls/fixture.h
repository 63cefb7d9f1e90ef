// SPDX-License-Identifier: Apache-2.0
/*
 * A worker with the plugin tls, one host, and a certificate of the plugin's own making: made by hand, so that a test
 * has the calls of the transport at the one end of a socket pair, and the bytes at the other. Of the fuzz target too.
 */
#ifndef MK_UNIT_TLS_FIXTURE_H
#define MK_UNIT_TLS_FIXTURE_H

#include "plugins/tls/tls.h"

#include "server/worker/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

extern const struct mk_plugin mk_plugin_tls;

static struct {
    struct mk__thread thread;
    struct mk_generation g;
    struct mk_host host;
    struct mk__host_settings host_settings;
    struct tls_server_conf server_conf;
    struct tls_host_conf host_conf;
    struct tls_host tls_host;
    struct tls_generation tls;
    struct mk_worker *worker;
    SSL_CTX *client;
} tls_fixture;

static inline void tls_fixture_open(void)
{
    X509 *leaf;
    EVP_PKEY *key;
    tls_fixture.g.plugins[0] = &mk_plugin_tls;
    tls_fixture.g.n_plugins = 1;
    tls_fixture.g.states[0] = &tls_fixture.tls;
    tls_fixture.g.refs = 1;
    tls_fixture.g.hosts = tls_fixture.g.default_host = &tls_fixture.host;
    tls_fixture.host.generation = &tls_fixture.g;
    tls_fixture.host.settings = &tls_fixture.host_settings;
    tls_fixture.host.states[0] = &tls_fixture.tls_host;
    tls_fixture.server_conf.ticket_lifetime_ms = 3600000;
    tls_fixture.tls_host =
        (struct tls_host){.conf = &tls_fixture.host_conf, .host = &tls_fixture.host, .generation = &tls_fixture.tls};
    tls_fixture.tls =
        (struct tls_generation){.g = &tls_fixture.g, .plugin = &mk_plugin_tls, .conf = &tls_fixture.server_conf};
    tls_counters_open();
    int err = socket_bio_start();
    err = err < 0 ? err : handshake_init();
    err = err < 0 ? err : selfsigned_get(&leaf, &key);
    tls_fixture.tls.ctx = err < 0 ? NULL : ssl_context_new(&tls_fixture.tls);
    err = err < 0 || tls_fixture.tls.ctx ? err : -ENOMEM;
    err = err < 0 ? err : load_self_signed(&tls_fixture.tls_host, leaf, key);
    tls_fixture.worker = mk__thread_new_worker(&tls_fixture.thread, &tls_fixture.g);
    tls_fixture.client = SSL_CTX_new(TLS_client_method());
    if (err < 0 || !tls_fixture.worker || !tls_fixture.client)
        abort();
    tls_fixture.worker->states[0] = tls_worker_new(tls_fixture.worker, &tls_fixture.tls);
}

static inline void tls_fixture_close(void)
{
    tls_worker_free(tls_fixture.worker->states[0]);
    mk__worker_free(tls_fixture.worker);
    tls_host_release(&tls_fixture.tls_host);
    SSL_CTX_free(tls_fixture.tls.ctx);
    SSL_CTX_free(tls_fixture.client);
    handshake_cleanup();
    selfsigned_stop();
    if (tls_fixture.thread.account.bytes)
        abort();
}

/* A connection; `*ret_fd` is the client's end, non-blocking as well. */
static inline struct mk_io tls_fixture_connect(int *ret_fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    struct mk_io io = {.transport = &tls_transport, .fd = pair[0]};
    *ret_fd = pair[1];
    if (tls_transport.open(&io, tls_fixture.worker) < 0)
        abort();
    return io;
}

/* A client of libssl at that end. */
static inline SSL *tls_fixture_client(int fd)
{
    SSL *ssl = SSL_new(tls_fixture.client);
    if (!ssl || SSL_set_fd(ssl, fd) != 1)
        abort();
    SSL_set_connect_state(ssl);
    return ssl;
}

/* Both take steps until the server is done: what its last one said. */
static inline int tls_fixture_handshake(struct mk_io *io, SSL *client)
{
    int r = -EAGAIN;
    for (int i = 0; i < 10 && r == -EAGAIN; i++) {
        SSL_do_handshake(client);
        r = tls_transport.handshake(io);
    }
    SSL_do_handshake(client);
    return r;
}

#endif
