// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of a worker: finds the server of a key and a connection to it, sends, ends what takes too long, and tells
 * the results.
 */
#include "memcached.h"

#include "hash.h"

#include <duda/dthread.h>
#include <duda/mem.h>
#include <duda/msg.h>

#include <errno.h>
#include <stdio.h>

enum { BUSY_COMMANDS = 16 }; /* without a reply, on each connection: then a further one is opened */

/* ── sentences ── */

/* Replaces what is no printable ASCII: the texts of servers are for logs and pages. */
static void clean_text(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void set_error(struct mc_pool *pool, const struct mc_server *s, const char *clause)
{
    if (s)
        snprintf(pool->error, sizeof(pool->error), "memcached %.*s: %s", (int)(s->target->dial->text.len),
                 s->target->dial->text.p, clause);
    else
        snprintf(pool->error, sizeof(pool->error), "%s", clause);
    clean_text(pool->error);
}

static bool is_error(int result)
{
    return result != 0 && result != -ENOENT && result != -EEXIST;
}

void mc_command_explain(const struct mc_command *c)
{
    int result = c->reply.result;
    char text[MC_REASON_BYTES];
    if (!is_error(result))
        return;
    if (result == -ECANCELED)
        set_error(c->pool, NULL, "the service ends in this worker");
    else if (c->has_lost_conn)
        set_error(c->pool, c->server, c->server->reason);
    else if (result == -ETIMEDOUT) {
        snprintf(text, sizeof(text), "no reply within %u ms", c->pool->cache->conf.timeout_ms);
        set_error(c->pool, c->server, text);
    } else if (result == -EMSGSIZE)
        set_error(c->pool, c->server, "the value is longer than value_bytes_max");
    else if (c->text) {
        snprintf(text, sizeof(text), "it says: %.120s", c->text);
        set_error(c->pool, c->server, text);
    } else
        set_error(c->pool, c->server, strerror(-result));
}

/* ── commands ── */

static void on_time(struct mk_timer *timer);

static struct mc_command *new_command(struct mc_conn *conn, unsigned op)
{
    struct mc_command *c = mem->alloc_z(sizeof(*c));
    if (!c)
        return NULL;
    struct mc_server *s = conn->server;
    struct mc_part *part = s->pool->part;
    *c = (struct mc_command){.pool = s->pool, .server = s, .conn = conn, .op = op, .opaque = ++part->last_opaque};
    c->sent_ms = mk_loop_now_ms(part->base->loop);
    mk_timer_init(&c->timer, on_time);
    mk_timer_arm(part->base->loop, &c->timer, s->pool->cache->conf.timeout_ms);
    mk_list_add(&conn->commands, &c->node);
    conn->n_commands++;
    s->pool->pending++;
    return c;
}

static bool has_caller(const struct mc_command *c)
{
    return c->wait || c->fn;
}

static void forget_request(struct mc_command *c)
{
    if (c->watch)
        c->watch->command = NULL;
    c->watch = NULL;
    c->dr = NULL;
}

void mc_command_free(struct mc_command *c)
{
    forget_request(c);
    mem->free(c->reply.value);
    mem->free(c->text);
    mem->free(c);
}

void mc_command_finish(struct mc_command *c, int result)
{
    struct mc_part *part = c->pool->part;
    mk_timer_cancel(&c->timer);
    mk_list_del(&c->node);
    c->conn->n_commands--;
    c->pool->pending--;
    c->conn = NULL;
    c->reply.result = result;
    if (is_error(result) && c->op != MC_NOOP && has_caller(c))
        mc_count(part, part->service->counters.errors, 1);
    if (has_caller(c))
        mk_list_add(&part->done, &c->node);
    else
        mc_command_free(c);
}

void mc_command_abandon(struct mc_command *c)
{
    forget_request(c);
    c->wait = NULL;
    c->fn = NULL;
    if (c->conn)
        return; /* its reply is still to come */
    mk_list_del(&c->node);
    mc_command_free(c);
}

/* ── timeouts ── */

/* The caller has its error; the late reply is dropped. */
static void time_out(struct mc_command *c)
{
    struct mc_conn *conn = c->conn;
    struct mc_command *rest = new_command(conn, c->op);
    if (!rest) {
        mc_conn_fail(conn, -ENOMEM, strerror(ENOMEM));
        return;
    }
    rest->opaque = c->opaque;
    rest->sent_ms = c->sent_ms;
    mk_list_del(&rest->node);
    mk_list_add(&c->node, &rest->node); /* before `c` */
    mc_command_finish(c, -ETIMEDOUT);
}

/* Returns whether the server answers no more: nothing came since the command was sent, or its reply is long overdue. */
static bool is_stuck(const struct mc_command *c, uint64_t now_ms)
{
    uint64_t timeout_ms = c->pool->cache->conf.timeout_ms;
    if (c->conn->state != MC_OPEN)
        return false; /* the dial has its own timeout */
    return c->conn->received_ms <= c->sent_ms || now_ms - c->sent_ms >= 2 * timeout_ms;
}

static void on_time(struct mk_timer *timer)
{
    struct mc_command *c = MK_CONTAINER_OF(timer, struct mc_command, timer);
    struct mc_part *part = c->pool->part;
    if (is_stuck(c, mk_loop_now_ms(part->base->loop)))
        mc_conn_fail(c->conn, -ETIMEDOUT, "it does not answer");
    else if (has_caller(c))
        time_out(c);
    else
        mk_timer_arm(part->base->loop, timer, c->pool->cache->conf.timeout_ms);
    mc_deliver(part);
}

/* ── telling ── */

static void call_back(struct mc_command *c)
{
    struct duda_package_worker *base = c->pool->part->base;
    duda_memcached_fn fn = c->fn;
    duda_request_t *dr = c->dr && duda_package_loader->worker_of(&mc_package, c->dr) ? c->dr : NULL;
    mc_command_explain(c);
    forget_request(c);
    c->fn = NULL;
    duda_package_loader->name_callback(base, (void (*)(void))fn);
    fn(dr, &c->reply, c->data);
    mc_command_free(c);
}

static void tell(struct mc_command *c)
{
    mk_list_del(&c->node);
    if (!c->wait)
        call_back(c);
    else if (c->pool->part->is_stopping)
        mc_command_free(c); /* of a dthread that was abandoned: its stack is gone */
    else if (--c->wait->left == 0)
        dthread->wake(c->wait->dthread);
}

static void log_news(struct mc_part *part)
{
    part->has_news = false;
    for (unsigned i = 0; i < part->n_pools; i++) {
        struct mc_pool *pool = &part->pools[i];
        for (unsigned k = 0; k < pool->cache->n; k++) {
            struct mc_server *s = &pool->servers[k];
            struct mk_str name = s->target->dial->text;
            if (s->news == MC_NO_NEWS)
                continue;
            s->is_logged = s->news == MC_FAILED;
            clean_text(s->reason);
            if (s->news == MC_FAILED)
                msg->warn("memcached %.*s: %s; commands to it fail", MK_STR_ARG(name), s->reason);
            else
                msg->info("memcached %.*s answers again", MK_STR_ARG(name));
            s->news = MC_NO_NEWS;
        }
    }
}

static void report_all(void *data)
{
    struct mc_part *part = data;
    if (part->has_news)
        log_news(part);
    while (!mk_list_empty(&part->done))
        tell(MK_LIST_FIRST(&part->done, struct mc_command, node));
}

void mc_deliver(struct mc_part *part)
{
    if (part->has_news || !mk_list_empty(&part->done))
        duda_package_loader->call(part->base, report_all, part);
}

/* ── servers and connections ── */

static bool is_down(const struct mc_server *s, uint64_t now_ms)
{
    return s->down_until_ms > now_ms;
}

static struct mc_conn *add_conn(struct mc_server *s)
{
    struct mc_conn *conn = mc_conn_new(s);
    if (conn)
        s->conns[s->n_conns++] = conn;
    return conn;
}

/* Returns whether to prefer one: the fewest commands, but none that the server has just refused. */
static bool is_better(const struct mc_conn *conn, const struct mc_conn *than, uint64_t now_ms)
{
    bool is_refused = conn->retry_ms > now_ms, other_is = than->retry_ms > now_ms;
    return is_refused != other_is ? other_is : conn->n_commands < than->n_commands;
}

/* Returns the best connection, or a new one if all have many commands; NULL without memory. */
static struct mc_conn *choose_conn(struct mc_server *s, uint64_t now_ms)
{
    struct mc_conn *best = s->n_conns ? s->conns[0] : NULL;
    for (unsigned i = 1; i < s->n_conns; i++)
        if (is_better(s->conns[i], best, now_ms))
            best = s->conns[i];
    if (best && (best->n_commands < BUSY_COMMANDS || s->n_conns == s->pool->cache->conf.connections_max))
        return best;
    struct mc_conn *added = add_conn(s);
    return added ? added : best;
}

/* Opens the connection if it is closed; its first command asks whether it is a server of the right version. */
static int open_conn(struct mc_conn *conn)
{
    if (conn->state != MC_CLOSED)
        return 0;
    mc_conn_open(conn);
    mc_command_write_noop(&conn->out);
    if (conn->out.err == 0 && new_command(conn, MC_NOOP))
        return 0;
    mc_conn_fail(conn, -ENOMEM, strerror(ENOMEM));
    return -ENOMEM;
}

/*
 * Returns whether other servers have the keys of this one, with skip_dead: from its failure until it has answered
 * again, which mn finds out, so that no command has to.
 */
static bool is_dead(struct mc_server *s, uint64_t now_ms)
{
    if (!s->down_until_ms || !s->pool->cache->conf.skip_dead)
        return false;
    struct mc_conn *conn = is_down(s, now_ms) ? NULL : choose_conn(s, now_ms);
    if (conn)
        open_conn(conn);
    return true;
}

/* Returns the server of a key that is not dead; if all are, the one that has it. */
static struct mc_server *choose_server(struct mc_pool *pool, struct mk_str key, uint64_t now_ms)
{
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

/* Returns 0, -EBUSY or -ENOMEM. */
static int make_room(struct mc_conn *conn, size_t n)
{
    if (conn->out.len - conn->out_sent + n > conn->out.max)
        return -EBUSY;
    if (conn->out.len + n > conn->out.max) {
        mk_buf_drop(&conn->out, conn->out_sent);
        conn->out_sent = 0;
    }
    int err = mk_buf_reserve(&conn->out, n);
    if (err < 0)
        mc_conn_fail(conn, err, strerror(-err));
    return err;
}

/* ── sending ── */

static int refuse(struct mc_pool *pool, const struct mc_server *s, int err, const char *clause)
{
    mc_count(pool->part, pool->part->service->counters.errors, 1);
    set_error(pool, s, clause);
    mk_task_schedule(pool->part->base->loop, &pool->flush); /* tells those that have failed with it */
    return err;
}

static int refuse_down(struct mc_pool *pool, const struct mc_server *s, uint64_t now_ms)
{
    char text[2 * MC_REASON_BYTES];
    snprintf(text, sizeof(text), "%s; it is tried again in %llu ms", s->reason,
             (unsigned long long)(s->down_until_ms - now_ms));
    return refuse(pool, s, s->err, text);
}

/* Writes the command to a connection. Returns it, or NULL with an error in `*ret_err`. */
static struct mc_command *write_command(struct mc_conn *conn, const struct duda_memcached_command *command,
                                        int *ret_err)
{
    *ret_err = open_conn(conn);
    if (*ret_err == 0)
        *ret_err = make_room(conn, command->len + MC_HEAD_BYTES_MAX);
    struct mc_command *c = *ret_err == 0 ? new_command(conn, (unsigned)command->op) : NULL;
    if (!c) {
        *ret_err = *ret_err ? *ret_err : -ENOMEM;
        return NULL;
    }
    mc_command_write(&conn->out, command, c->opaque, mk_loop_wall_seconds(c->pool->part->base->loop));
    mc_conn_schedule(conn);
    return c;
}

int mc_pool_submit(struct mc_pool *pool, const struct duda_memcached_command *command, struct mc_command **ret)
{
    const struct duda_memcached_conf *conf = &pool->cache->conf;
    uint64_t now_ms = mk_loop_now_ms(pool->part->base->loop);
    const char *clause;
    int err = mc_command_check(command, conf->value_bytes_max, &clause);
    pool->error[0] = '\0';
    mc_count(pool->part, pool->part->service->counters.commands, 1);
    if (err < 0)
        return refuse(pool, NULL, err, clause);
    if (pool->pending >= conf->pending_max)
        return refuse(pool, NULL, -EBUSY, "pending_max commands of this worker wait for replies");
    struct mc_server *s = choose_server(pool, mc_command_key(command), now_ms);
    if (is_down(s, now_ms))
        return refuse_down(pool, s, now_ms);
    struct mc_conn *conn = choose_conn(s, now_ms);
    *ret = conn ? write_command(conn, command, &err) : NULL;
    if (*ret)
        return 0;
    err = conn ? err : -ENOMEM;
    return refuse(pool, s, err, err == -EBUSY ? "queue_bytes_max bytes wait to be sent" : strerror(-err));
}

/* ── the worker's begin and end ── */

void mc_pool_init(struct mc_pool *pool, struct mc_part *part, const struct duda_memcached *cache,
                  struct mc_server *servers)
{
    *pool = (struct mc_pool){.part = part, .cache = cache, .servers = servers};
    mk_list_init(&pool->dirty);
    mk_task_init(&pool->flush, mc_conn_flush_all);
    for (unsigned i = 0; i < cache->n; i++)
        servers[i] = (struct mc_server){.pool = pool, .target = &cache->targets[i]};
}

void mc_pool_stop(struct mc_pool *pool)
{
    mk_task_cancel(&pool->flush);
    for (unsigned i = 0; i < pool->cache->n; i++) {
        struct mc_server *s = &pool->servers[i];
        while (s->n_conns)
            mc_conn_free(s->conns[--s->n_conns], pool->part->base->loop);
    }
}
