// SPDX-License-Identifier: Apache-2.0
/*
 * Connections to memcached servers: opens them, sends what commands have written, and matches replies, which come in
 * the order of the commands. A reply repeats the number of its command ("O"): one that differs closes the connection.
 *
 *     CLOSED ─► DIALING ─► OPEN ─► CLOSED      mc_conn_fail: refused, lost, garbage, silent
 */
#include "memcached.h"

#include <duda/mem.h>

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_BYTES = 16 << 10,
    READ_BYTES_MAX = 256 << 10,
    READS_OF_A_TURN = 16,
    BACKOFF_MIN_MS = 100,
    BACKOFF_MAX_MS = 2000,
};

static struct mk_loop *get_loop(const struct mc_conn *conn)
{
    return conn->server->pool->part->base->loop;
}

static uint64_t get_now_ms(const struct mc_conn *conn)
{
    return mk_loop_now_ms(get_loop(conn));
}

/* ── closing ── */

/*
 * At a stop of the server the thread may have ended, and its loop is closed: then a name whose lookup still runs is
 * left to its thread, which frees it.
 */
static void cancel_dial(struct mk_dial *dial, bool has_loop)
{
    bool is_looking_up = dial->name;
    for (unsigned i = 0; i < 2 && !has_loop; i++) {
        if (dial->attempts[i].event.fd < 0)
            continue;
        close(dial->attempts[i].event.fd);
        dial->attempts[i].event.fd = -1;
        is_looking_up = false;
    }
    if (has_loop || !is_looking_up)
        mk_dial_cancel(dial);
}

static void close_conn(struct mc_conn *conn, bool has_loop)
{
    if (conn->state == MC_DIALING)
        cancel_dial(&conn->dial, has_loop);
    if (conn->state == MC_OPEN) {
        if (has_loop)
            mk_event_del(get_loop(conn), &conn->event);
        close(conn->event.fd);
    }
    conn->state = MC_CLOSED;
    conn->waits_for_write = conn->has_replied = false;
    conn->skip = conn->out_sent = 0;
    mk_list_del(&conn->dirty);
    mk_buf_release(&conn->out);
    mk_buf_release(&conn->in);
}

static void finish_all(struct mc_conn *conn, int result)
{
    while (!mk_list_empty(&conn->commands)) {
        struct mc_command *c = MK_LIST_FIRST(&conn->commands, struct mc_command, node);
        c->has_lost_conn = true;
        mc_command_finish(c, result);
    }
}

static bool has_other_open(const struct mc_conn *conn)
{
    const struct mc_server *s = conn->server;
    for (unsigned i = 0; i < s->n_conns; i++)
        if (s->conns[i] != conn && s->conns[i]->state == MC_OPEN)
            return true;
    return false;
}

static void set_news(struct mc_server *s, bool failed)
{
    s->news = s->is_logged == failed ? MC_NO_NEWS : failed ? MC_FAILED : MC_BACK;
    s->pool->part->has_news |= s->news != MC_NO_NEWS;
}

/* Has further commands fail at once for a while. */
static void back_off(struct mc_server *s, uint64_t now_ms)
{
    s->backoff_ms = s->backoff_ms ? s->backoff_ms * 2 : BACKOFF_MIN_MS;
    if (s->backoff_ms > BACKOFF_MAX_MS)
        s->backoff_ms = BACKOFF_MAX_MS;
    s->down_until_ms = now_ms + s->backoff_ms;
    set_news(s, true);
}

void mc_conn_fail(struct mc_conn *conn, int err, const char *reason)
{
    struct mc_server *s = conn->server;
    bool is_lost = conn->has_replied && err == -EPIPE; /* it may be reachable again at once */
    snprintf(s->reason, sizeof(s->reason), "%s", reason);
    s->err = err;
    if (is_lost)
        conn->retry_ms = 0;
    else if (has_other_open(conn))
        conn->retry_ms = get_now_ms(conn) + BACKOFF_MAX_MS;
    else
        back_off(s, get_now_ms(conn));
    close_conn(conn, true);
    finish_all(conn, err);
}

void mc_conn_free(struct mc_conn *conn, bool has_loop)
{
    close_conn(conn, has_loop);
    finish_all(conn, -ECANCELED);
    mem->free(conn);
}

/* ── sending ── */

static void set_write(struct mc_conn *conn, bool wanted)
{
    if (conn->waits_for_write == wanted)
        return;
    conn->waits_for_write = wanted;
    int err = mk_event_change(get_loop(conn), &conn->event, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
    if (err < 0)
        mc_conn_fail(conn, err, strerror(-err));
}

static void empty_out(struct mc_conn *conn)
{
    conn->out_sent = 0;
    mk_buf_release(&conn->out);
    set_write(conn, false);
}

static void send_bytes(struct mc_conn *conn)
{
    while (conn->out_sent < conn->out.len) {
        ssize_t n = send(conn->event.fd, conn->out.data + conn->out_sent, conn->out.len - conn->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            mk_buf_drop(&conn->out, conn->out_sent);
            conn->out_sent = 0;
            set_write(conn, true);
            return;
        }
        if (n < 0) {
            mc_conn_fail(conn, -EPIPE, "the connection was lost");
            return;
        }
        conn->out_sent += (size_t)n;
    }
    empty_out(conn);
}

void mc_conn_schedule(struct mc_conn *conn)
{
    struct mc_pool *pool = conn->server->pool;
    if (conn->state != MC_OPEN || conn->waits_for_write || !mk_list_empty(&conn->dirty))
        return;
    mk_list_add(&pool->dirty, &conn->dirty);
    mk_task_schedule(pool->part->base->loop, &pool->flush);
}

void mc_conn_flush_all(struct mk_task *task)
{
    struct mc_pool *pool = MK_CONTAINER_OF(task, struct mc_pool, flush);
    while (!mk_list_empty(&pool->dirty)) {
        struct mc_conn *conn = MK_LIST_FIRST(&pool->dirty, struct mc_conn, dirty);
        mk_list_del(&conn->dirty);
        send_bytes(conn);
    }
    mc_deliver(pool->part);
}

/* ── replies ── */

static char *copy_bytes(struct mk_str bytes)
{
    char *copy = mem->alloc(bytes.len + 1);
    if (!copy)
        return NULL;
    if (bytes.len)
        memcpy(copy, bytes.p, bytes.len);
    copy[bytes.len] = '\0';
    return copy;
}

static bool is_number(unsigned op)
{
    return op == DUDA_MEMCACHED_INCREASE || op == DUDA_MEMCACHED_DECREASE;
}

/* Moves the value into the reply. Returns 0, -ENOMEM or -EPROTO. */
static int take_value(struct mc_command *c, struct mk_str value)
{
    if (is_number(c->op)) { /* one that has lost digits may have spaces behind it */
        while (value.len && value.p[value.len - 1] == ' ')
            value.len--;
        return mk_str_u64(value, UINT64_MAX, &c->reply.number) ? 0 : -EPROTO;
    }
    c->reply.value = copy_bytes(value);
    c->reply.len = c->reply.value ? value.len : 0;
    return c->reply.value ? 0 : -ENOMEM;
}

/* The placeholder of a value that one caller makes is empty. */
static bool is_placeholder(const struct mc_command *c, const struct mc_reply *reply)
{
    return c->op == DUDA_MEMCACHED_RECACHE && reply->code == MC_VA && reply->len == 0;
}

static int take_reply(struct mc_command *c, const struct mc_reply *reply, struct mk_str value)
{
    int result = mc_command_result(c->op, reply);
    c->reply.flags = reply->flags;
    c->reply.cas = reply->cas;
    c->reply.ttl_s = reply->ttl_s;
    c->reply.won = reply->won;
    c->reply.busy = reply->busy && !reply->won;
    c->reply.stale = reply->stale;
    if (result == -EREMOTEIO)
        c->text = copy_bytes(reply->text);
    if (!c->wait && !c->fn)
        return result;
    if (result == 0 && reply->code == MC_ME) {
        const char *space = reply->text.len ? memchr(reply->text.p, ' ', reply->text.len) : NULL;
        size_t skipped = space ? (size_t)(space + 1 - reply->text.p) : reply->text.len; /* the key */
        value = mk_str(reply->text.p + skipped, reply->text.len - skipped);
    }
    if (result == 0 && is_placeholder(c, reply))
        return -ENOENT;
    return result == 0 && (reply->code == MC_VA || reply->code == MC_ME) ? take_value(c, value) : result;
}

/* Returns a clause about a reply that the connection cannot continue after; or NULL. */
static const char *check_reply(const struct mc_command *c, const struct mc_reply *reply)
{
    bool is_plain = reply->code == MC_EN || reply->code == MC_ME || reply->code == MC_MN || reply->code >= MC_ERROR;
    if (!c)
        return "it has sent a reply to no command";
    if (reply->has_opaque ? reply->opaque != c->opaque : !is_plain)
        return "its replies are not those of the commands";
    if (reply->code == MC_ERROR)
        return "it does not know the meta protocol, for which memcached 1.6 is needed";
    return mc_command_result(c->op, reply) == -EPROTO ? "its replies are not those of the commands" : NULL;
}

/* Returns whether the server's error is one of the connection: too many of them, a password is wanted ... */
static bool is_of_conn(const struct mc_command *c, const struct mc_reply *reply)
{
    return reply->code >= MC_ERROR && c->op == MC_NOOP;
}

static void count_reply(struct mc_conn *conn, const struct mc_command *c, int result)
{
    struct mc_part *part = conn->server->pool->part;
    if (c->op > DUDA_MEMCACHED_TOUCH || (result != 0 && result != -ENOENT))
        return;
    mc_count(part, result == 0 ? part->service->counters.hits : part->service->counters.misses, 1);
}

/* The server is fine. */
static void note_reply(struct mc_conn *conn)
{
    struct mc_server *s = conn->server;
    conn->has_replied = true;
    s->backoff_ms = 0;
    s->down_until_ms = 0;
    set_news(s, false);
}

/* Returns the command of a reply; NULL if it has none that fits: the connection has failed then. */
static struct mc_command *find_command(struct mc_conn *conn, const struct mc_reply *reply)
{
    struct mc_command *c =
        mk_list_empty(&conn->commands) ? NULL : MK_LIST_FIRST(&conn->commands, struct mc_command, node);
    const char *wrong = check_reply(c, reply);
    if (!wrong)
        return c;
    mc_conn_fail(conn, -EPROTO, wrong);
    return NULL;
}

/* Returns false if the connection has failed. */
static bool match_reply(struct mc_conn *conn, const struct mc_reply *reply, struct mk_str value)
{
    struct mc_command *c = find_command(conn, reply);
    if (!c)
        return false;
    if (is_of_conn(c, reply)) {
        char text[MC_REASON_BYTES];
        snprintf(text, sizeof(text), "it says: %.*s", (int)(reply->text.len < 100 ? reply->text.len : 100),
                 reply->text.p);
        mc_conn_fail(conn, -EREMOTEIO, text);
        return false;
    }
    int result = take_reply(c, reply, value);
    if (result == -EPROTO) {
        mc_conn_fail(conn, -EPROTO, "a number that it has sent is none");
        return false;
    }
    note_reply(conn);
    count_reply(conn, c, result);
    mc_command_finish(c, result);
    return true;
}

/* A value that is longer than the limit is dropped as it comes. Returns false if the connection has failed. */
static bool skip_value(struct mc_conn *conn, const struct mc_reply *reply)
{
    struct mc_command *c = find_command(conn, reply);
    if (!c)
        return false;
    conn->skip = reply->len + 2;
    mc_command_finish(c, -EMSGSIZE);
    return true;
}

static size_t skip_bytes(struct mc_conn *conn, size_t at)
{
    size_t n = conn->in.len - at;
    if (n > conn->skip)
        n = conn->skip;
    conn->skip -= n;
    return at + n;
}

/*
 * Takes one reply at `*at`. Returns false if there is none left, or the connection has failed.
 */
static bool take_one(struct mc_conn *conn, size_t *at)
{
    struct mc_reply reply;
    const char *error = NULL, *p = conn->in.data + *at;
    size_t n = conn->in.len - *at;
    int used = mc_reply_parse(p, n, &reply, &error);
    if (used <= 0) {
        if (used < 0)
            mc_conn_fail(conn, used, error);
        return false;
    }
    struct mk_str value = MK_STR_NONE;
    size_t all = (size_t)used;
    if (reply.code == MC_VA && reply.len > conn->server->pool->cache->conf.value_bytes_max) {
        *at += all;
        return skip_value(conn, &reply);
    }
    if (reply.code == MC_VA) {
        all += reply.len + 2;
        if (n < all)
            return false;
        value = mk_str(p + used, reply.len);
        if (memcmp(p + all - 2, "\r\n", 2) != 0) {
            mc_conn_fail(conn, -EPROTO, "a value has another length than it says");
            return false;
        }
    }
    *at += all;
    return match_reply(conn, &reply, value);
}

static void take_replies(struct mc_conn *conn)
{
    size_t at = 0;
    do
        at = skip_bytes(conn, at);
    while (at < conn->in.len && take_one(conn, &at));
    if (conn->state != MC_OPEN)
        return;
    mk_buf_drop(&conn->in, at);
}

/* Returns whether more may be there. */
static bool receive_once(struct mc_conn *conn)
{
    size_t room = conn->in.len < READ_BYTES ? READ_BYTES : conn->in.len;
    if (room > READ_BYTES_MAX)
        room = READ_BYTES_MAX;
    if (room > conn->in.max - conn->in.len)
        room = conn->in.max - conn->in.len;
    int err = mk_buf_reserve(&conn->in, room);
    if (err < 0) {
        mc_conn_fail(conn, err, strerror(-err));
        return false;
    }
    ssize_t n = recv(conn->event.fd, conn->in.data + conn->in.len, room, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        mc_conn_fail(conn, -EPIPE, n == 0 ? "it has closed the connection" : "the connection was lost");
        return false;
    }
    conn->in.len += (size_t)n;
    conn->received_ms = get_now_ms(conn);
    take_replies(conn);
    return conn->state == MC_OPEN && (size_t)n == room;
}

static void on_ready(struct mk_event *event, uint32_t events)
{
    struct mc_conn *conn = MK_CONTAINER_OF(event, struct mc_conn, event);
    struct mc_part *part = conn->server->pool->part;
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        for (unsigned n = 0; n < READS_OF_A_TURN && receive_once(conn); n++)
            continue;
    if (conn->in.len == 0)
        mk_buf_release(&conn->in); /* a connection that is idle has no buffer */
    if (conn->state == MC_OPEN && events & EPOLLOUT)
        send_bytes(conn);
    mc_deliver(part);
}

/* ── opening ── */

/* The results of a dial that mean something else to a caller (memcached.h). */
static int to_error(int err)
{
    return err == -ENOENT ? -ECONNREFUSED : err == -ECONNRESET ? -EPIPE : err;
}

static void on_dial(struct mk_dial *dial, int fd)
{
    struct mc_conn *conn = MK_CONTAINER_OF(dial, struct mc_conn, dial);
    struct mc_part *part = conn->server->pool->part;
    int err = fd < 0 ? fd : 0;
    if (fd >= 0) {
        conn->event.fd = fd;
        err = mk_event_add(get_loop(conn), &conn->event, EPOLLIN);
        if (err < 0)
            close(fd);
    }
    if (err < 0) {
        mc_conn_fail(conn, to_error(err), mk_dial_error(err));
    } else {
        conn->state = MC_OPEN;
        conn->received_ms = get_now_ms(conn);
        mc_count(part, part->service->counters.connections, 1);
        mc_conn_schedule(conn);
    }
    mc_deliver(part);
}

void mc_conn_open(struct mc_conn *conn)
{
    const struct mc_server *s = conn->server;
    if (conn->state != MC_CLOSED)
        return;
    struct mk_dial_options options = {.timeout_ms = s->pool->cache->conf.connect_timeout_ms};
    mk_buf_init(&conn->out, s->pool->cache->conf.queue_bytes_max);
    mk_buf_init(&conn->in, s->pool->cache->conf.value_bytes_max + MC_LINE_BYTES_MAX + 2);
    conn->state = MC_DIALING;
    mk_dial_start(&conn->dial, get_loop(conn), s->target->dial, &options, on_dial);
}

struct mc_conn *mc_conn_new(struct mc_server *server)
{
    struct mc_conn *conn = mem->alloc_z(sizeof(*conn));
    if (!conn)
        return NULL;
    conn->server = server;
    conn->event = (struct mk_event){.ready = on_ready, .fd = -1};
    mk_list_init(&conn->dirty);
    mk_list_init(&conn->commands);
    return conn;
}
