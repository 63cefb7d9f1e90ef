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
 * The bucket of a section in a connection. It stays after the last response until it is full, so that many small
 * responses, or ranges, are not faster than a large one.
 */
struct conn_bucket {
    struct conn_bucket *next;
    struct zone *zone; /* holds a reference */
    unsigned refs;     /* responses under way */
    uint64_t full_at;  /* without them */
    struct bucket bucket;
};

/* A response; in the arena of the exchange. */
struct throttle {
    struct exchange *x;
    struct conn_bucket *conn; /* NULL: the rate is the client's */
    struct mk_address client;
    struct mk_timer timer;
};

/* ── connections ── */

static void free_bucket(struct conn_state *c, struct conn_bucket **at)
{
    struct conn_bucket *b = *at;
    assert(!b->refs);
    *at = b->next;
    zones_put(c->process->zones, b->zone);
    mk_account_free(NULL, b, sizeof(*b));
}

void send_rate_free_buckets(struct conn_state *c)
{
    while (c->buckets)
        free_bucket(c, &c->buckets);
}

/* Returns the bucket of a section; NULL if there is none. Frees others on the way that are full. */
static struct conn_bucket *find_bucket(struct conn_state *c, const struct zone *zone, uint64_t now_us)
{
    struct conn_bucket *found = NULL, **at = &c->buckets;
    while (*at) {
        found = (*at)->zone == zone ? *at : found;
        if ((*at)->zone != zone && !(*at)->refs && (*at)->full_at <= now_us)
            free_bucket(c, at);
        else
            at = &(*at)->next;
    }
    return found;
}

/* Returns the connection's bucket, to be put; NULL without memory. */
static struct conn_bucket *get_bucket(const struct exchange *x, struct process_state *process)
{
    struct zone *zone = x->sends->base.zone;
    struct conn_state *c = mandril_get_conn(mk_request_connection(x->req), process);
    if (!c)
        return NULL;
    struct conn_bucket *b = find_bucket(c, zone, mk_loop_now_us(mk_request_loop(x->req)));
    if (!b) {
        b = mk_account_alloc(NULL, sizeof(*b));
        if (!b)
            return NULL;
        *b = (struct conn_bucket){.next = c->buckets, .zone = zones_hold(zone)};
        c->buckets = b;
    }
    b->refs++;
    return b;
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
    const struct limit *limit = t->x->sends;
    struct zone_client *client = mk_client_table_lock(limit->base.zone->table, &t->client, now_us);
    bucket_put(&client->sent, &limit->send_rate, back);
    uint64_t n = wanted ? take_bytes(&client->sent, &limit->send_rate, wanted, now_us, ret_wait_us) : 0;
    uint64_t idle = bucket_full_at(&client->sent, &limit->send_rate),
             rate = bucket_full_at(&client->rate, &limit->rate);
    zone_unlock_client(limit->base.zone, client, idle > rate ? idle : rate);
    return n;
}

static uint64_t take_tokens(struct throttle *t, uint64_t wanted, uint64_t now_us, uint64_t *ret_wait_us)
{
    if (t->conn)
        return take_bytes(&t->conn->bucket, &t->x->sends->send_rate, wanted, now_us, ret_wait_us);
    return take_client_bytes(t, wanted, 0, now_us, ret_wait_us);
}

static void put_back(struct throttle *t, uint64_t bytes, uint64_t now_us)
{
    uint64_t unused;
    if (t->conn)
        bucket_put(&t->conn->bucket, &t->x->sends->send_rate, bytes);
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
    uint64_t n = take_tokens(t, size, now_us, &wait_us);
    if (!n) {
        uint64_t ms = wait_us / 1000 + 1;
        mk_timer_arm(loop, &t->timer, (uint32_t)(ms < WAIT_MS_MIN ? WAIT_MS_MIN : ms));
        return -EAGAIN;
    }
    ssize_t got = mk_filter_read(filter, to, (size_t)n);
    put_back(t, n - (got > 0 ? (uint64_t)got : 0), now_us);
    return got;
}

void send_rate_start(struct exchange *x, struct process_state *process)
{
    if (!x->sends || x->throttle)
        return;
    struct throttle *t = mk_arena_zalloc(mk_request_arena(x->req), sizeof(*t));
    uint64_t length;
    bool known = mk_response_get_length(x->req, &length);
    if (!t)
        return mk_response_abort(x->req);
    t->x = x;
    t->client = mk_request_client(x->req);
    mk_timer_init(&t->timer, wake_response);
    bool is_for_connection = x->sends->conf->send_rate_for == SEND_RATE_CONNECTION;
    if (is_for_connection)
        t->conn = get_bucket(x, process);
    x->throttle = t;
    if ((is_for_connection && !t->conn) || mk_response_filter(x->req, send_slowly, t) < 0)
        return mk_response_abort(x->req);
    if (known)
        mk_response_set_length(x->req, length);
}

void send_rate_end(struct exchange *x)
{
    if (!x->throttle)
        return;
    mk_timer_cancel(&x->throttle->timer);
    if (x->throttle->conn) {
        /* the next response of the connection frees it, or its end */
        x->throttle->conn->refs--;
        x->throttle->conn->full_at = bucket_full_at(&x->throttle->conn->bucket, &x->sends->send_rate);
    }
    x->throttle = NULL;
}
