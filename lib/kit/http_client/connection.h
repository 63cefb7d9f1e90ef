// SPDX-License-Identifier: Apache-2.0
/*
 * The connections of <monkey/kit/http_client.h>: one is lent to one request at a time, and may be kept idle between two
 * of them. It is watched once, edge-triggered, for its whole life.
 *
 *     mk__http_conn_open or mk__http_conn_take ─► (request) ─► mk__http_conn_close or mk__http_conn_keep
 */
#ifndef MK_HTTP_CLIENT_CONNECTION_H
#define MK_HTTP_CLIENT_CONNECTION_H

#include <monkey/kit/backend_stats.h>
#include <monkey/kit/http_client.h>

struct mk_http_conn {
    struct mk_event event;
    struct mk_io io;
    struct mk_loop *loop;
    const struct mk_worker *worker;
    const struct mk_transport_client *settings;
    const struct mk_backend_stats *stats; /* NULL: it is not counted */
    void (*fn)(void *user);               /* there is something to do; NULL: it is idle, with the next three */
    void *user;
    struct mk_http_idle *idle;
    struct mk_list node;
    uint64_t idle_since_ms;
    bool is_ready; /* its handshake is done */
    size_t address_len;
    char address[]; /* of the target */
};

/*
 * Opens a connection on a descriptor that was dialed, which it takes over. Returns 0, -ENOMEM (`*ret` is NULL), or
 * another -errno of the transport or the loop: the connection must be closed then, too.
 */
int mk__http_conn_open(const struct mk_http_client_options *options, struct mk_loop *loop, int fd, void (*fn)(void *),
                       void *user, struct mk_http_conn **ret);
void mk__http_conn_close(struct mk_http_conn *c);

/* Lends the idle connection that was used last and fits the options; NULL: there is none. */
struct mk_http_conn *mk__http_conn_take(const struct mk_http_client_options *options, void (*fn)(void *), void *user);
/* Keeps the connection for other requests. */
void mk__http_conn_keep(struct mk_http_conn *c, struct mk_http_idle *idle);

static inline void mk__http_conn_count(const struct mk_http_conn *c, enum mk_backend_counter counter, int64_t n)
{
    if (c->stats)
        mk_backend_stats_add(c->stats, counter, c->worker, n);
}

#endif
