// SPDX-License-Identifier: Apache-2.0
/*
 * Keeps idle connections to backends. Bytes on one of them end it, as its end does: a backend has nothing
 * to say there (RFC 9112 section 9.3). What TLS says for itself, such as a session ticket, does not.
 */
#include "gateway.h"

#include <monkey/base/hash.h>

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
    EXCESS_MS = 1000, /* how long more than KeepAlive are kept: those of requests at the same time come back together */
    QUEUE_MS = 10,    /* how long one is kept whose next request, which had waited, does not come after all */
    SPARES_MAX = 64,
};

/* ── backends ── */

static void on_timer(struct mk_timer *timer);

/* What distinguishes the connections of a backend. */
struct key {
    struct mk_str route, server, preamble;
};

/* Returns whether no section of the generation that serves now has this route. */
static bool is_former(const struct mk__gw_thread *t, uint64_t route_hash, struct mk_str key)
{
    const struct mk_gateway_route *r = t->serving ? t->serving->routes : NULL;
    while (r && (r->hash != route_hash || !mk_str_starts(key, r->key)))
        r = r->next_in_generation;
    return t->serving && !r;
}

static struct mk__gw_backend *make_backend(struct mk__gw_thread *t, const struct mk_gateway_route *route,
                                           const struct mk_backend_stats *stats, uint64_t hash, const struct key *key)
{
    size_t key_len = key->route.len + key->server.len + key->preamble.len;
    struct mk__gw_backend *b = mk_account_alloc(t->account, sizeof(*b) + key_len);
    if (!b)
        return NULL;
    *b = (struct mk__gw_backend){
        .thread = t,
        .stats = stats,
        .keep_alive = route->conf->keep_alive > 0 ? (uint32_t)route->conf->keep_alive : 0,
        .keep_alive_timeout_ms = route->conf->keep_alive_timeout_ms,
        .is_retired = is_former(t, route->hash, route->key),
        .hash = hash,
        .route_hash = route->hash,
        .key = {b->key_bytes, key_len},
        .preamble = {b->key_bytes + key_len - key->preamble.len, key->preamble.len},
    };
    char *at = mempcpy(b->key_bytes, key->route.p, key->route.len);
    if (key->server.len)
        at = mempcpy(at, key->server.p, key->server.len);
    if (key->preamble.len)
        memcpy(at, key->preamble.p, key->preamble.len);
    mk_list_init(&b->idle);
    mk_timer_init(&b->timer, on_timer);
    mk_list_add(&t->backends[hash % MK__GW_BUCKETS], &b->node);
    t->n_backends++;
    return b;
}

static struct mk__gw_backend *find_backend(struct mk__gw_thread *t, uint64_t hash, const struct key *key)
{
    MK_LIST_EACH_ITEM(&t->backends[hash % MK__GW_BUCKETS], struct mk__gw_backend, node, b) {
        size_t len = b->key.len - b->preamble.len;
        if (b->hash == hash && mk_str_eq(b->preamble, key->preamble) && len == key->route.len + key->server.len &&
            mk_str_eq(mk_str(b->key.p, key->route.len), key->route) &&
            mk_str_eq(mk_str(b->key.p + key->route.len, key->server.len), key->server))
            return b;
    }
    return NULL;
}

struct mk__gw_backend *mk__gw_backend_hold(struct mk__gw_thread *t, const struct mk_gateway_route *route,
                                           struct mk_upstream_server *server, struct mk_str preamble)
{
    const struct key key = {route->key, server ? server->key : MK_STR(""), preamble};
    uint64_t hash = mk_hash_add(route->hash, key.server.p, key.server.len);
    hash = mk_hash_add(hash, preamble.p, preamble.len);
    struct mk__gw_backend *b = find_backend(t, hash, &key);
    if (!b)
        b = make_backend(t, route, server ? mk_target_stats_find(&route->stats, server->name) : route->stats.backend,
                         hash, &key);
    if (!b)
        return NULL;
    b->refs++;
    b->n_used++;
    b->upstreams = route->upstreams;
    b->server = server; /* it lasts as long as its requests, which are its holds */
    b->last_server = server;
    return b;
}

static void free_unused(struct mk__gw_backend *b)
{
    if (b->refs || b->n_idle)
        return;
    mk_list_del(&b->node);
    mk_timer_cancel(&b->timer);
    if (--b->thread->n_backends == 0)
        mk__gw_pipes_release(&b->thread->pipes);
    mk_account_free(b->thread->account, b, sizeof(*b) + b->key.len);
}

bool mk__gw_backend_end_use(struct mk__gw_backend *b)
{
    assert(b->n_used > 0);
    const struct mk_loop *next = b->server ? b->upstreams->end(b->server, mk__gw_thread_get_worker(b->thread)) : NULL;
    if (--b->n_used == 0)
        b->server = NULL;
    return next && next == b->thread->base.loop;
}

void mk__gw_backend_release(struct mk__gw_backend *b)
{
    mk__gw_backend_end_use(b);
    mk__gw_backend_put(b);
}

void mk__gw_backend_put(struct mk__gw_backend *b)
{
    assert(b->refs > 0);
    b->refs--;
    free_unused(b);
}

/* ── connections ── */

static void count_event(const struct mk__gw_backend *b, enum mk_backend_counter counter, int64_t n)
{
    mk_backend_stats_add(b->stats, counter, mk__gw_thread_get_worker(b->thread), n);
}

static void free_conn(struct mk__gw_backend_conn *c)
{
    struct mk__gw_thread *t = c->backend->thread;
    const struct mk_transport *transport = c->io.transport;
    mk_event_del(t->base.loop, &c->event);
    if (transport->close_notify)
        transport->close_notify(&c->io);
    transport->close(&c->io);
    mk_account_free(t->account, c, sizeof(*c));
}

static void remove_idle(struct mk__gw_backend_conn *c)
{
    struct mk__gw_backend *b = c->backend;
    mk_list_del(&c->node);
    b->n_idle--;
    b->thread->n_awaited -= !b->keep_alive;
    count_event(b, MK_BACKEND_IDLE, -1);
}

static void end_idle(struct mk__gw_backend_conn *c)
{
    struct mk__gw_backend *b = c->backend;
    remove_idle(c);
    free_conn(c);
    free_unused(b);
}

/*
 * After a short count there is nothing to read, unless the end may have come with the bytes: it is not announced again,
 * nor is the message that TLS has for it.
 */
ssize_t mk__gw_backend_read(struct mk__gw_backend_conn *c, void *to, size_t size)
{
    if (c->is_drained)
        return -EAGAIN;
    ssize_t n = c->io.transport->read(&c->io, to, size);
    bool is_short = n > 0 && (size_t)n < size && !c->is_ending && !c->io.transport->close_notify;
    c->is_drained = n == -EAGAIN || is_short;
    if (n > 0)
        count_event(c->backend, MK_BACKEND_RECEIVED_BYTES, n);
    return n;
}

int mk__gw_backend_read_later(struct mk__gw_backend_conn *c)
{
    int err = mk_event_change(c->backend->thread->base.loop, &c->event, EVENTS);
    return err < 0 ? err : -EAGAIN;
}

ssize_t mk__gw_backend_splice(struct mk__gw_backend_conn *c, struct mk__gw_pipe *to, size_t size)
{
    if (c->is_drained)
        return -EAGAIN;
    ssize_t n = mk__gw_pipe_fill(to, c->io.fd, size);
    c->is_drained = n == -EAGAIN;
    if (n > 0)
        count_event(c->backend, MK_BACKEND_RECEIVED_BYTES, n);
    return n;
}

/* Tells whether there is nothing to read; what is read is lost. */
static bool is_quiet(struct mk__gw_backend_conn *c)
{
    char byte;
    return mk__gw_backend_read(c, &byte, 1) == -EAGAIN;
}

static void on_event(struct mk_event *event, uint32_t events)
{
    struct mk__gw_backend_conn *c = MK_CONTAINER_OF(event, struct mk__gw_backend_conn, event);
    c->is_ending |= (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
    if (events & ~(uint32_t)EPOLLOUT)
        c->is_drained = false;
    if (c->fn)
        c->fn(c->user, events);
    else if (events & ~(uint32_t)EPOLLOUT && !is_quiet(c))
        end_idle(c);
}

/* Returns when the connection that has been idle longest is to end. */
static uint64_t get_idle_end(const struct mk__gw_backend *b)
{
    const struct mk__gw_backend_conn *c = MK_LIST_FIRST(&b->idle, struct mk__gw_backend_conn, node);
    uint32_t excess_ms = b->keep_alive ? EXCESS_MS : QUEUE_MS;
    bool is_short = b->n_idle > b->keep_alive && excess_ms < b->keep_alive_timeout_ms;
    return c->idle_since_ms + (is_short ? excess_ms : b->keep_alive_timeout_ms);
}

static void arm_timer(struct mk__gw_backend *b, uint64_t now)
{
    uint64_t end = get_idle_end(b);
    mk_timer_arm(b->thread->base.loop, &b->timer, end > now ? (uint32_t)(end - now) : 0);
}

/* Ends the connections that have been idle for long enough, and waits for the next one. */
static void on_timer(struct mk_timer *timer)
{
    struct mk__gw_backend *b = MK_CONTAINER_OF(timer, struct mk__gw_backend, timer);
    uint64_t now = mk_loop_now_ms(b->thread->base.loop);
    b->refs++;
    while (b->n_idle && get_idle_end(b) <= now)
        end_idle(MK_LIST_FIRST(&b->idle, struct mk__gw_backend_conn, node));
    if (b->n_idle)
        arm_timer(b, now);
    mk__gw_backend_put(b);
}

/* Ends a connection to the same server that was kept for this request, which is of a section with another key. */
static void end_awaited(const struct mk__gw_backend *own)
{
    for (unsigned i = 0; i < MK__GW_BUCKETS; i++) {
        MK_LIST_EACH_ITEM(&own->thread->backends[i], struct mk__gw_backend, node, b) {
            if (b->keep_alive || !b->n_idle || b->last_server != own->server)
                continue;
            end_idle(MK_LIST_FIRST(&b->idle, struct mk__gw_backend_conn, node));
            return;
        }
    }
}

struct mk__gw_backend_conn *mk__gw_backend_take_idle(struct mk__gw_backend *b, uint64_t age_ms)
{
    if (!b->n_idle) {
        if (b->server && b->thread->n_awaited)
            end_awaited(b);
        return NULL;
    }
    struct mk__gw_backend_conn *c = MK_CONTAINER_OF(b->idle.prev, struct mk__gw_backend_conn, node);
    if (mk_loop_now_ms(b->thread->base.loop) - c->idle_since_ms >= age_ms) {
        if (!b->keep_alive)
            end_idle(c); /* it was kept for this request */
        return NULL;
    }
    remove_idle(c);
    count_event(b, MK_BACKEND_BUSY, 1);
    c->is_reused = true;
    return c;
}

/* A new socket has room for it. Returns 0 or -errno. */
static int send_preamble(int fd, struct mk_str preamble)
{
    ssize_t n = preamble.len ? send(fd, preamble.p, preamble.len, MSG_NOSIGNAL | MSG_MORE) : 0;
    return n < 0 ? -errno : (size_t)n == preamble.len ? 0 : -ENOBUFS;
}

int mk__gw_backend_add(struct mk__gw_backend *b, int fd, const struct mk__gw_client *client, struct mk_worker *worker,
                       struct mk__gw_backend_conn **ret)
{
    int err = send_preamble(fd, b->preamble);
    struct mk__gw_backend_conn *c = err < 0 ? NULL : mk_account_alloc(b->thread->account, sizeof(*c));
    if (!c) {
        close(fd);
        return err < 0 ? err : -ENOMEM;
    }
    *c = (struct mk__gw_backend_conn){.event = {.ready = on_event, .fd = fd},
                                      .io = {.transport = client->transport, .fd = fd},
                                      .backend = b,
                                      .is_bound = b->preamble.len > 0};
    err = client->transport->connect(&c->io, worker, client->settings);
    if (err == 0)
        err = mk_event_add(b->thread->base.loop, &c->event, EVENTS);
    if (err < 0) {
        client->transport->close(&c->io);
        mk_account_free(b->thread->account, c, sizeof(*c));
        return err;
    }
    count_event(b, MK_BACKEND_OPENED, 1);
    count_event(b, MK_BACKEND_BUSY, 1);
    *ret = c;
    return 0;
}

void mk__gw_backend_keep(struct mk__gw_backend_conn *c, bool is_awaited)
{
    struct mk__gw_backend *b = c->backend;
    c->fn = NULL;
    if ((!b->keep_alive && !is_awaited) || b->is_retired || mk__gw_thread_is_low_on_memory(b->thread) ||
        b->thread->base.ended || c->is_ending || !is_quiet(c)) {
        mk__gw_backend_close(c);
        return;
    }
    c->idle_since_ms = mk_loop_now_ms(b->thread->base.loop);
    mk_list_add(&b->idle, &c->node);
    count_event(b, MK_BACKEND_BUSY, -1);
    count_event(b, MK_BACKEND_IDLE, 1);
    b->n_idle++;
    b->thread->n_awaited += !b->keep_alive;
    if (b->n_idle == 1 || b->n_idle == b->keep_alive + 1)
        arm_timer(b, c->idle_since_ms);
}

void mk__gw_backend_close(struct mk__gw_backend_conn *c)
{
    c->fn = NULL;
    count_event(c->backend, MK_BACKEND_BUSY, -1);
    free_conn(c);
}

/* ── threads ── */

struct mk__gw_spare {
    struct mk__gw_spare *next;
    size_t bytes;
};

void *mk__gw_thread_alloc(struct mk__gw_thread *t, size_t bytes)
{
    struct mk__gw_spare *spare = t->spares;
    if (!spare || spare->bytes != bytes)
        return mk_account_alloc(t->account, bytes);
    t->spares = spare->next;
    t->n_spares--;
    return spare;
}

void mk__gw_thread_free(struct mk__gw_thread *t, void *exchange, size_t bytes)
{
    struct mk__gw_spare *spare = exchange;
    assert(bytes >= sizeof(*spare));
    if (MK_HAS_ASAN || MK_HAS_MSAN || t->n_spares == SPARES_MAX) { /* these find uses of freed memory */
        mk_account_free(t->account, exchange, bytes);
        return;
    }
    *spare = (struct mk__gw_spare){t->spares, bytes};
    t->spares = spare;
    t->n_spares++;
}

/* Closes those that belong to clients, which know how. */
static void close_bound(struct mk__gw_thread *t, bool with_logins)
{
    MK_LIST_EACH_ITEM(&t->bound, struct mk__gw_backend_conn, bound_node, c) {
        if (with_logins || !c->has_login)
            c->fn(c->user, EPOLLHUP);
    }
}

static void end_all_idle(struct mk__gw_backend *b)
{
    b->refs++;
    while (b->n_idle)
        end_idle(MK_LIST_FIRST(&b->idle, struct mk__gw_backend_conn, node));
    mk__gw_backend_put(b);
}

void mk__gw_thread_shed(struct mk__gw_thread *t)
{
    for (struct mk__gw_spare *next; t->spares; t->spares = next) {
        next = t->spares->next;
        mk_account_free(t->account, t->spares, t->spares->bytes);
    }
    t->n_spares = 0;
    close_bound(t, false);
    for (unsigned i = 0; i < MK__GW_BUCKETS; i++) {
        MK_LIST_EACH_ITEM(&t->backends[i], struct mk__gw_backend, node, backend)
            end_all_idle(backend);
    }
}

void mk__gw_thread_serve(struct mk__gw_thread *t, const struct mk_gateway_generation *g)
{
    t->serving = g;
    for (unsigned i = 0; i < MK__GW_BUCKETS; i++) {
        MK_LIST_EACH_ITEM(&t->backends[i], struct mk__gw_backend, node, b) {
            b->is_retired = is_former(t, b->route_hash, b->key);
            if (b->is_retired)
                end_all_idle(b);
        }
    }
}

static void shed_idle(struct mk_thread_call *call, struct mk_thread *thread)
{
    struct mk__gw_thread *t = MK_CONTAINER_OF(call, struct mk__gw_thread, shed);
    atomic_store(&t->is_shedding, false);
    if (thread)
        mk__gw_thread_shed(t);
    mk_thread_put(&t->base);
}

void mk__gw_threads_shed(struct mk_threads *all)
{
    enum { THREADS_MAX = 256 };
    struct mk_thread *threads[THREADS_MAX];
    unsigned n = mk_threads_list(all, threads, THREADS_MAX, NULL, NULL);
    for (unsigned i = 0; i < n && i < THREADS_MAX; i++) {
        struct mk__gw_thread *t = mk__gw_thread_of(threads[i]);
        bool is_idle = false;
        if (!atomic_compare_exchange_strong(&t->is_shedding, &is_idle, true) || mk_thread_call(&t->base, &t->shed) < 0)
            mk_thread_put(&t->base); /* otherwise the call holds it */
    }
}

/* They count in the same memory. */
const struct mk_worker *mk__gw_thread_get_worker(const struct mk__gw_thread *t)
{
    const struct mk_list *workers = &t->base.workers;
    return mk_list_empty(workers) ? t->last_worker
                                  : MK_CONTAINER_OF(workers->prev, struct mk_thread_worker, node)->worker;
}

static void open_thread(struct mk_thread *base, struct mk_worker *worker)
{
    struct mk__gw_thread *t = mk__gw_thread_of(base);
    t->gateway = MK_CONTAINER_OF(base->threads, struct mk_gateway, threads);
    t->account = t->pipes.account = mk_worker_account(worker);
    t->shed.fn = shed_idle;
    mk_list_init(&t->orphans);
    mk_list_init(&t->bound);
    for (unsigned i = 0; i < MK__GW_BUCKETS; i++)
        mk_list_init(&t->backends[i]);
}

static void end_thread(struct mk_thread *base)
{
    struct mk__gw_thread *t = mk__gw_thread_of(base);
    close_bound(t, true);
    mk__gw_thread_shed(t);
    mk_account_free(t->account, t->buffer, t->buffer ? MK__GW_BUFFER_BYTES : 0);
    t->buffer = NULL;
}

const struct mk_thread_type mk__gw_thread_type = {.bytes = sizeof(struct mk__gw_thread),
                                                  .open = open_thread,
                                                  .end = end_thread};
