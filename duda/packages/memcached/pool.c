// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of a worker: finds the server of a key and a connection to it, sends, and tells the results.
 */
#include "memcached.h"

#include "hash.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum {
    BUSY_COMMANDS = 16,       /* without a reply, on each connection: then a further one is opened */
    SCRATCH_BYTES = 64 << 10, /* that a worker keeps */
};

/* ── sentences ── */

/* Replaces what is no printable ASCII: the texts of servers are for logs and pages. */
static void sanitize_text(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* Returns a copy, or NULL. */
static char *make_sentence(const struct mc_server *s, const char *clause)
{
    char text[MC_ERROR_BYTES];
    snprintf(text, sizeof(text), "memcached %.*s: %s", MK_STR_ARG(s->target->options.target->text), clause);
    char *copy = mem->alloc(strlen(text) + 1);
    if (copy)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

static void set_error(struct mc_pool *pool, const char *sentence)
{
    snprintf(pool->error, sizeof(pool->error), "%s", sentence);
    sanitize_text(pool->error);
}

static bool is_error(int result)
{
    return result != 0 && result != -ENOENT && result != -EEXIST;
}

void mc_command_explain(const struct mc_command *c)
{
    if (is_error(c->reply.result))
        set_error(c->server->pool, c->text ? c->text : strerror(-c->reply.result));
}

/* ── commands ── */

/* Makes a command of what is written in the worker's buffer. Returns NULL without memory. */
static struct mc_command *make_command(struct mc_server *s, unsigned op, uint32_t opaque)
{
    assert(op <= MC_NOOP);
    struct mk_buf *bytes = &s->pool->worker->scratch;
    struct mc_command *c = bytes->err < 0 ? NULL : mem->alloc(sizeof(*c) + bytes->len);
    if (c) {
        *c = (struct mc_command){.server = s, .op = op, .opaque = opaque, .refs = 2};
        memcpy(c->bytes, bytes->data, bytes->len);
        mk_upstream_call_init(&c->base, mk_str(c->bytes, bytes->len));
        s->pool->pending += op != MC_NOOP;
    }
    mk_buf_drop(bytes, bytes->len);
    if (bytes->size > SCRATCH_BYTES || bytes->err < 0)
        mk_buf_release(bytes);
    return c;
}

struct mc_command *mc_command_new_noop(struct mc_server *server)
{
    mc_command_write_noop(&server->pool->worker->scratch);
    struct mc_command *c = make_command(server, MC_NOOP, 0);
    if (c)
        c->refs = 1; /* it has no caller */
    return c;
}

static void forget_request(struct mc_command *c)
{
    if (c->watch)
        c->watch->command = NULL;
    c->watch = NULL;
    c->dr = NULL;
}

void mc_command_put(struct mc_command *c)
{
    assert(c->refs > 0);
    if (--c->refs)
        return;
    forget_request(c);
    mem->free(c->reply.value);
    mem->free(c->text);
    mem->free(c);
}

void mc_command_abandon(struct mc_command *c)
{
    forget_request(c);
    c->wait = NULL;
    c->fn = NULL;
    mc_command_put(c);
}

static void call_service(void *data)
{
    struct mc_command *c = data;
    struct duda_package_worker *base = c->server->pool->worker->base;
    duda_request_t *dr = c->dr && duda_package_loader->worker_of(&mc_package, c->dr) ? c->dr : NULL;
    assert(c->fn);
    mc_command_explain(c);
    duda_package_loader->name_callback(base, (void (*)(void))c->fn);
    c->fn(dr, &c->reply, c->data);
}

/* Notifies the caller, which has the command until it has taken the result. */
static void report_result(struct mc_command *c)
{
    assert(!c->fn || !c->wait);
    struct mc_worker *w = c->server->pool->worker;
    if (c->fn) {
        duda_package_loader->call(w->base, call_service, c);
        mc_command_abandon(c);
    } else if (w->is_stopping) {
        mc_command_abandon(c); /* of a dthread that was abandoned: its stack is gone */
    } else if (--c->wait->left == 0) {
        duda_package_loader->wake(&c->wait->base, 0);
    }
}

void mc_command_finish(struct mc_command *c, int result, const char *clause)
{
    struct mc_worker *w = c->server->pool->worker;
    if (!c->wait && !c->fn)
        return;
    c->reply.result = result;
    if (is_error(result))
        mc_count(w, w->service->counters.errors);
    if (clause && !c->text)
        c->text = make_sentence(c->server, clause);
    report_result(c);
}

/* ── servers and connections ── */

static bool is_down(const struct mc_server *s, uint64_t now_ms)
{
    return s->up.down_until_ms > now_ms;
}

static struct mc_conn *add_conn(struct mc_server *s)
{
    assert(s->n_conns < MC_CONNECTIONS_MAX);
    struct mc_conn *conn = mem->alloc_z(sizeof(*conn));
    if (!conn)
        return NULL;
    conn->server = s;
    mk_upstream_conn_init(&conn->base, &s->up, &mc_protocol);
    s->conns[s->n_conns++] = conn;
    return conn;
}

/* Returns whether to prefer one: the fewest commands, but none that the server has just refused. */
static bool is_better(const struct mc_conn *conn, const struct mc_conn *than, uint64_t now_ms)
{
    bool is_refused = conn->base.retry_ms > now_ms, other_is = than->base.retry_ms > now_ms;
    return is_refused != other_is ? other_is : conn->base.n_calls < than->base.n_calls;
}

/* Returns the best connection, or a new one if all have many commands; NULL without memory. */
static struct mc_conn *choose_conn(struct mc_server *s, uint64_t now_ms)
{
    struct mc_conn *best = s->n_conns ? s->conns[0] : NULL;
    for (unsigned i = 1; i < s->n_conns; i++)
        if (is_better(s->conns[i], best, now_ms))
            best = s->conns[i];
    if (best && (best->base.n_calls < BUSY_COMMANDS || s->n_conns == s->pool->cache->conf.connections_max))
        return best;
    struct mc_conn *added = add_conn(s);
    return added ? added : best;
}

/*
 * Returns whether other servers have the keys of this one, with skip_dead: from its failure until it has answered
 * again, which mn finds out, so that no command has to.
 */
static bool is_dead(struct mc_server *s, uint64_t now_ms)
{
    if (!s->up.failures || !s->pool->cache->conf.skip_dead)
        return false;
    struct mc_conn *conn = is_down(s, now_ms) ? NULL : choose_conn(s, now_ms);
    if (conn)
        mk_upstream_connect(&conn->base);
    return true;
}

/* Returns the server of a key that is not dead; if all are, the one that has it. */
static struct mc_server *choose_server(struct mc_pool *pool, struct mk_str key, uint64_t now_ms)
{
    assert(pool->cache->n > 0);
    struct mc_server *best = NULL, *best_alive = NULL;
    uint64_t hash = mc_hash(key), high = 0, high_alive = 0;
    for (unsigned i = 0; i < pool->cache->n; i++) {
        struct mc_server *s = &pool->servers[i];
        uint64_t score = mc_score(s->target->hash, hash);
        if (!best || score > high) {
            best = s;
            high = score;
        }
        if ((!best_alive || score > high_alive) && !is_dead(s, now_ms)) {
            best_alive = s;
            high_alive = score;
        }
    }
    return best_alive ? best_alive : best;
}

/* ── sending ── */

static int refuse_setting(struct mc_pool *pool, int err, const char *sentence)
{
    mc_count(pool->worker, pool->worker->service->counters.errors);
    set_error(pool, sentence);
    return err;
}

static int refuse_down(struct mc_pool *pool, const struct mc_server *s, uint64_t now_ms)
{
    assert(is_down(s, now_ms));
    char text[MC_ERROR_BYTES];
    snprintf(text, sizeof(text), "%s; it is tried again in %llu ms", s->up.text,
             (unsigned long long)(s->up.down_until_ms - now_ms));
    return refuse_setting(pool, mc_to_error(s->up.err), text);
}

/* Sends a command on a connection. Returns 0 or an error. */
static int send_command(struct mc_conn *conn, const struct duda_memcached_command *command, struct mc_command **ret)
{
    struct mc_worker *w = conn->server->pool->worker;
    mc_command_write(&w->scratch, command, ++w->last_opaque, mk_loop_wall_seconds(w->loop));
    struct mc_command *c = make_command(conn->server, (unsigned)command->op, w->last_opaque);
    if (!c)
        return -ENOMEM;
    int err = mk_upstream_send(&conn->base, &c->base);
    if (err == 0) {
        *ret = c;
        return 0;
    }
    assert(conn->server->pool->pending > 0);
    c->refs = 1; /* the connection has not taken it */
    conn->server->pool->pending--;
    mc_command_put(c);
    return err;
}

int mc_pool_submit(struct mc_pool *pool, const struct duda_memcached_command *command, struct mc_command **ret)
{
    const struct duda_memcached_conf *conf = &pool->cache->conf;
    uint64_t now_ms = mk_loop_now_ms(pool->worker->loop);
    const char *clause;
    int err = mc_command_check(command, conf->value_bytes_max, &clause);
    pool->error[0] = '\0';
    mc_count(pool->worker, pool->worker->service->counters.commands);
    if (err < 0)
        return refuse_setting(pool, err, clause);
    if (pool->pending >= conf->pending_max)
        return refuse_setting(pool, -EBUSY, "pending_max commands of this worker wait for replies");
    struct mc_server *s = choose_server(pool, mc_command_key(command), now_ms);
    if (is_down(s, now_ms))
        return refuse_down(pool, s, now_ms);
    struct mc_conn *conn = choose_conn(s, now_ms);
    err = conn ? send_command(conn, command, ret) : -ENOMEM;
    return err == 0
               ? 0
               : refuse_setting(pool, err, err == -EBUSY ? "queue_bytes_max bytes wait to be sent" : strerror(-err));
}

/* ── the worker's begin and end ── */

void mc_pool_init(struct mc_pool *pool, struct mc_worker *w, const struct duda_memcached *cache,
                  struct mc_server *servers)
{
    assert(cache->n <= DUDA_MEMCACHED_SERVERS_MAX && cache->conf.connections_max <= MC_CONNECTIONS_MAX);
    *pool = (struct mc_pool){.worker = w, .cache = cache, .servers = servers};
    for (unsigned i = 0; i < cache->n; i++) {
        servers[i] = (struct mc_server){.pool = pool, .target = &cache->targets[i]};
        mk_upstream_init(&servers[i].up, &w->upstreams, &cache->targets[i].options);
    }
}

void mc_pool_stop(struct mc_pool *pool, bool has_loop)
{
    for (unsigned i = 0; i < pool->cache->n; i++) {
        struct mc_server *s = &pool->servers[i];
        while (s->n_conns) {
            struct mc_conn *conn = s->conns[--s->n_conns];
            mk_upstream_stop(&conn->base, has_loop);
            mem->free(conn);
        }
    }
}
