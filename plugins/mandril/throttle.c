// SPDX-License-Identifier: Apache-2.0
/*
 * Sends the bodies of responses at SendRate: a filter that passes on as many bytes as are in a bucket, and waits for a
 * timer when there are too few. The bucket is in the record of the client, which all workers share, or belongs to the
 * connection, whose streams are all in one worker.
 */
#include "mandril.h"

#include <assert.h>
#include <errno.h>

enum { WAIT_MS_MIN = 10 };

/*
 * A connection whose responses keep to a rate. It stays behind the last one until its bucket is full, so that many
 * small responses, or ranges, are not faster than a large one.
 */
struct throttle_conn {
    struct mk_list node;
    const struct mk_io *io;
    const struct limit *limit;
    unsigned refs; /* responses under way */
    struct bucket bucket;
};

/* A response; in the arena of the exchange. */
struct throttle {
    struct exchange *x;
    struct throttle_conn *conn; /* NULL: the rate is the client's */
    struct mk_address client;
    struct mk_timer timer;
};

/* ── connections ── */

static unsigned hash_io(const struct mk_io *io)
{
    return (unsigned)((uintptr_t)io * 0x9e3779b97f4a7c15U >> 58) % THROTTLE_CHAINS;
}

static void free_conn(struct throttle_conn *conn)
{
    mk_list_del(&conn->node);
    mk_account_free(NULL, conn, sizeof(*conn));
}

static bool is_unused(const struct throttle_conn *conn, uint64_t now_us)
{
    return !conn->refs && bucket_full_at(&conn->bucket, &conn->limit->send_rate) <= now_us;
}

/* Returns the connection; NULL if it is not known. Frees others on the way that are not used any more. */
static struct throttle_conn *find_conn(struct mk_list *chain, const struct mk_io *io, const struct limit *limit,
                                       uint64_t now_us)
{
    struct mk_list *n, *save;
    struct throttle_conn *found = NULL;
    MK_LIST_EACH(chain, n, save) {
        struct throttle_conn *conn = MK_CONTAINER_OF(n, struct throttle_conn, node);
        if (conn->io == io && conn->limit == limit)
            found = conn;
        else if (is_unused(conn, now_us))
            free_conn(conn);
    }
    return found;
}

/* Returns the connection's bucket; NULL without memory. */
static struct throttle_conn *get_conn(struct exchange *x)
{
    struct worker_state *w = mk_worker_state(mk_request_worker(x->req), &mk_plugin_mandril);
    const struct mk_io *io = mk_request_io(x->req);
    struct mk_list *chain = &w->throttles[hash_io(io)];
    struct throttle_conn *conn = find_conn(chain, io, x->limit, mk_loop_now_us(mk_request_loop(x->req)));
    if (!conn) {
        conn = mk_account_alloc(NULL, sizeof(*conn));
        if (!conn)
            return NULL;
        *conn = (struct throttle_conn){.io = io, .limit = x->limit};
        mk_list_add(chain, &conn->node);
    }
    conn->refs++;
    return conn;
}

static void put_conn(struct throttle_conn *conn, uint64_t now_us)
{
    conn->refs--;
    if (is_unused(conn, now_us))
        free_conn(conn);
}

void throttle_free_conns(struct worker_state *w)
{
    struct mk_list *n, *save;
    for (unsigned i = 0; i < THROTTLE_CHAINS; i++)
        MK_LIST_EACH(&w->throttles[i], n, save) {
            assert(!MK_CONTAINER_OF(n, struct throttle_conn, node)->refs);
            free_conn(MK_CONTAINER_OF(n, struct throttle_conn, node));
        }
}

/* ── buckets ── */

/* Takes up to `wanted` bytes, but none if there are fewer than a filter may read. Sets the time to wait then. */
static uint64_t take_bytes(struct bucket *b, const struct bucket_rate *rate, uint64_t wanted, uint64_t now_us,
                           uint64_t *ret_wait_us)
{
    uint64_t n = bucket_count(b, rate, now_us);
    if (n < MK_FILTER_BYTES_MIN) {
        *ret_wait_us = bucket_wait_us(b, rate, rate->capacity / rate->token / 2);
        return 0;
    }
    n = n < wanted ? n : wanted;
    bucket_take(b, rate, n, now_us);
    return n;
}

/* As take_bytes(), from the record of the client; puts `back` bytes back first. */
static uint64_t take_client_bytes(const struct throttle *t, uint64_t wanted, uint64_t back, uint64_t now_us,
                                  uint64_t *ret_wait_us)
{
    const struct limit *limit = t->x->limit;
    struct zone_client *client = mk_client_table_lock(limit->base.zone->table, &t->client, now_us);
    bucket_put(&client->sent, &limit->send_rate, back);
    uint64_t n = wanted ? take_bytes(&client->sent, &limit->send_rate, wanted, now_us, ret_wait_us) : 0;
    uint64_t idle = bucket_full_at(&client->sent, &limit->send_rate),
             rate = bucket_full_at(&client->rate, &limit->rate);
    zone_unlock_client(limit->base.zone, client, idle > rate ? idle : rate);
    return n;
}

static uint64_t take(struct throttle *t, uint64_t wanted, uint64_t now_us, uint64_t *ret_wait_us)
{
    if (t->conn)
        return take_bytes(&t->conn->bucket, &t->x->limit->send_rate, wanted, now_us, ret_wait_us);
    return take_client_bytes(t, wanted, 0, now_us, ret_wait_us);
}

static void put_back(struct throttle *t, uint64_t bytes, uint64_t now_us)
{
    uint64_t unused;
    if (t->conn)
        bucket_put(&t->conn->bucket, &t->x->limit->send_rate, bytes);
    else if (bytes)
        take_client_bytes(t, 0, bytes, now_us, &unused);
}

/* ── the filter ── */

static void wake_response(struct mk_timer *timer)
{
    mk_response_wake(MK_CONTAINER_OF(timer, struct throttle, timer)->x->req);
}

static ssize_t send_slowly(struct mk_filter *filter, char *to, size_t size, void *ctx)
{
    struct throttle *t = ctx;
    struct mk_loop *loop = mk_request_loop(t->x->req);
    uint64_t wait_us = 0, now_us = mk_loop_now_us(loop);
    uint64_t n = take(t, size, now_us, &wait_us);
    if (!n) {
        uint64_t ms = wait_us / 1000 + 1;
        mk_timer_arm(loop, &t->timer, (uint32_t)(ms < WAIT_MS_MIN ? WAIT_MS_MIN : ms));
        return -EAGAIN;
    }
    ssize_t got = mk_filter_read(filter, to, (size_t)n);
    put_back(t, n - (got > 0 ? (uint64_t)got : 0), now_us);
    return got;
}

void throttle_start(struct exchange *x)
{
    const struct limit_conf *conf = x->limit ? x->limit->conf : NULL;
    if (!conf || !conf->send_rate || x->throttle)
        return;
    struct throttle *t = mk_arena_zalloc(mk_request_arena(x->req), sizeof(*t));
    uint64_t length;
    bool known = mk_response_get_length(x->req, &length);
    if (!t)
        return mk_response_abort(x->req);
    t->x = x;
    t->client = mk_request_client(x->req);
    mk_timer_init(&t->timer, wake_response);
    if (conf->send_rate_for == SEND_RATE_CONNECTION)
        t->conn = get_conn(x);
    x->throttle = t;
    if ((conf->send_rate_for == SEND_RATE_CONNECTION && !t->conn) || mk_response_filter(x->req, send_slowly, t) < 0)
        return mk_response_abort(x->req);
    if (known)
        mk_response_set_length(x->req, length);
}

void throttle_end(struct exchange *x)
{
    if (!x->throttle)
        return;
    mk_timer_cancel(&x->throttle->timer);
    if (x->throttle->conn)
        put_conn(x->throttle->conn, mk_loop_now_us(mk_request_loop(x->req)));
    x->throttle = NULL;
}
