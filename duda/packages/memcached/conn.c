// SPDX-License-Identifier: Apache-2.0
/*
 * The protocol of memcached on a connection: matches replies, which come in the order of the commands. A reply repeats
 * the number of its command ("O"): one that differs closes the connection.
 */
#include "memcached.h"

#include <duda/mem.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>

static struct mc_conn *conn_of(struct mk_upstream_conn *base)
{
    return MK_CONTAINER_OF(base, struct mc_conn, base);
}

static struct mc_command *command_of(struct mk_upstream_call *base)
{
    return MK_CONTAINER_OF(base, struct mc_command, base);
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

/* Moves the value into the reply. Returns 0, -ENOMEM or -EPROTO. */
static int take_value(struct mc_command *c, struct mk_str value)
{
    /* a number that has lost digits may have spaces after it */
    if (c->op == DUDA_MEMCACHED_INCREASE || c->op == DUDA_MEMCACHED_DECREASE)
        return mk_str_u64(mk_str_strip_end(value, " "), UINT64_MAX, &c->reply.number) ? 0 : -EPROTO;
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
    if (c->base.has_result || (!c->wait && !c->fn))
        return result;
    c->reply.flags = reply->flags;
    c->reply.cas = reply->cas;
    c->reply.ttl_s = reply->ttl_s;
    c->reply.won = reply->won;
    c->reply.busy = reply->busy && !reply->won;
    c->reply.stale = reply->stale;
    if (result == 0 && reply->code == MC_ME) {
        value = reply->text;
        mk_str_split(&value, ' '); /* the key */
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

static void count_reply(struct mc_conn *conn, const struct mc_command *c, int result)
{
    struct mc_worker *w = conn->server->pool->worker;
    if (c->op > DUDA_MEMCACHED_TOUCH || (result != 0 && result != -ENOENT))
        return;
    mc_count(w, result == 0 ? w->service->counters.hits : w->service->counters.misses);
}

/* The most of an error's text that messages have. */
static int limit_text(struct mk_str text)
{
    return text.len < 120 ? (int)text.len : 120;
}

/* The command's reply is whole: takes it off the connection. */
static void finish_command(struct mc_conn *conn, struct mc_command *c, int result, const char *clause)
{
    assert(mk_upstream_first(&conn->base) == &c->base);
    mk_upstream_take(&conn->base, &c->base);
    if (!c->base.has_result)
        mc_command_finish(c, result, clause);
    mc_protocol.free(&conn->base, &c->base);
}

/* The reply to mn: other errors than those of a command are too many connections, a missing password ... */
static void take_handshake_reply(struct mc_conn *conn, struct mc_command *c, const struct mc_reply *reply)
{
    assert(c->op == MC_NOOP);
    char text[MC_ERROR_BYTES];
    if (reply->code >= MC_ERROR) {
        snprintf(text, sizeof(text), "it says: %.*s", limit_text(reply->text), reply->text.p);
        mk_upstream_fail(&conn->base, -EREMOTEIO, text, true);
        return;
    }
    mk_upstream_note_reply(&conn->base);
    finish_command(conn, c, 0, NULL);
    mk_upstream_accept(&conn->base);
}

/* Returns the command of a reply; NULL if it has none that fits: the connection has failed then. */
static struct mc_command *find_command(struct mc_conn *conn, const struct mc_reply *reply)
{
    struct mk_upstream_call *first = mk_upstream_first(&conn->base);
    struct mc_command *c = first ? command_of(first) : NULL;
    const char *wrong = check_reply(c, reply);
    if (!wrong)
        return c;
    mk_upstream_fail(&conn->base, -EPROTO, wrong, true);
    return NULL;
}

static void match_reply(struct mc_conn *conn, const struct mc_reply *reply, struct mk_str value)
{
    char text[MC_ERROR_BYTES];
    struct mc_command *c = find_command(conn, reply);
    if (!c)
        return;
    if (c->op == MC_NOOP) {
        take_handshake_reply(conn, c, reply);
        return;
    }
    int result = take_reply(c, reply, value);
    if (result == -EPROTO) {
        mk_upstream_fail(&conn->base, -EPROTO, "a number that it has sent is none", true);
        return;
    }
    bool is_refused = result == -EREMOTEIO;
    if (is_refused)
        snprintf(text, sizeof(text), "it says: %.*s", limit_text(reply->text), reply->text.p);
    mk_upstream_note_reply(&conn->base);
    count_reply(conn, c, result);
    finish_command(conn, c, result, is_refused ? text : NULL);
}

/* A value that is longer than the limit is dropped as it comes. */
static void skip_value(struct mc_conn *conn, const struct mc_reply *reply)
{
    struct mc_command *c = find_command(conn, reply);
    if (!c)
        return;
    conn->skip = reply->len + 2;
    finish_command(conn, c, -EMSGSIZE, "the value is longer than value_bytes_max");
}

static size_t skip_bytes(struct mc_conn *conn, size_t n)
{
    if (n > conn->skip)
        n = conn->skip;
    conn->skip -= n;
    return n;
}

/* Takes one reply. Returns its bytes; 0: it is not whole, or the connection has failed. */
static size_t take_one(struct mc_conn *conn, struct mk_str bytes)
{
    struct mc_reply reply;
    const char *error = NULL;
    int used = mc_reply_parse(bytes.p, bytes.len, &reply, &error);
    if (used < 0)
        mk_upstream_fail(&conn->base, used, error, true);
    if (used <= 0)
        return 0;
    size_t all = (size_t)used;
    struct mk_str value = MK_STR_NONE;
    if (reply.code == MC_VA && reply.len > conn->server->pool->cache->conf.value_bytes_max) {
        skip_value(conn, &reply);
        return all;
    }
    if (reply.code == MC_VA) {
        all += reply.len + 2;
        if (bytes.len < all)
            return 0;
        value = mk_str(bytes.p + used, reply.len);
        if (memcmp(bytes.p + all - 2, "\r\n", 2) != 0) {
            mk_upstream_fail(&conn->base, -EPROTO, "a value has another length than it says", true);
            return 0;
        }
    }
    match_reply(conn, &reply, value);
    return all;
}

/* Takes all whole replies. Returns how many bytes they have. */
static size_t take_replies(struct mc_conn *conn, struct mk_str bytes)
{
    uint64_t serial = conn->base.serial;
    size_t at = 0, n = 1;
    while (n && conn->base.serial == serial) {
        at += skip_bytes(conn, bytes.len - at);
        n = at < bytes.len ? take_one(conn, mk_str_after(bytes, at)) : 0;
        at += n;
    }
    return at;
}

static void feed_reader(struct mk_upstream_conn *base, const char *bytes, size_t n)
{
    struct mc_conn *conn = conn_of(base);
    uint64_t serial = base->serial;
    bool has_begun = conn->in.len;
    if (has_begun)
        mk_buf_add(&conn->in, bytes, n);
    size_t used = take_replies(conn, has_begun ? mk_str(conn->in.data, conn->in.len) : mk_str(bytes, n));
    if (base->serial != serial)
        return;
    assert(used <= (has_begun ? conn->in.len : n));
    if (has_begun)
        mk_buf_drop(&conn->in, used);
    else
        mk_buf_add(&conn->in, bytes + used, n - used);
    if (conn->in.err < 0)
        mk_upstream_fail(base, conn->in.err, strerror(-conn->in.err), true);
    else if (conn->in.len == 0)
        mk_buf_release(&conn->in); /* a connection that is idle has no buffer */
}

/* ── the connection ── */

static int start_handshake(struct mk_upstream_conn *base)
{
    struct mc_conn *conn = conn_of(base);
    struct mc_worker *w = conn->server->pool->worker;
    const struct duda_memcached_conf *conf = &conn->server->pool->cache->conf;
    struct mc_command *c = mc_command_new_noop(conn->server);
    mk_buf_init(&conn->in, (size_t)conf->value_bytes_max + MC_LINE_BYTES_MAX + MK_UPSTREAM_READ_BYTES);
    mc_count(w, w->service->counters.connections);
    if (!c)
        return -ENOMEM;
    mk_upstream_handshake(base, &c->base);
    return 0;
}

/* The results that are something else to a caller (memcached.h). */
int mc_to_error(int err)
{
    return err == -ENOENT ? -ECONNREFUSED : err == -ECONNRESET ? -EPIPE : err;
}

static void report_error(struct mk_upstream_conn *base, struct mk_upstream_call *call, int err, const char *text)
{
    struct mc_command *c = command_of(call);
    (void)base;
    c->text = copy_bytes(mk_str_c(text));
    mc_command_finish(c, mc_to_error(err), NULL);
}

static void free_call(struct mk_upstream_conn *base, struct mk_upstream_call *call)
{
    struct mc_command *c = command_of(call);
    assert(c->op == MC_NOOP || conn_of(base)->server->pool->pending > 0);
    conn_of(base)->server->pool->pending -= c->op != MC_NOOP;
    mc_command_put(c);
}

static void on_close(struct mk_upstream_conn *base)
{
    struct mc_conn *conn = conn_of(base);
    conn->skip = 0;
    mk_buf_release(&conn->in);
}

const struct mk_upstream_protocol mc_protocol = {
    .handshake = start_handshake,
    .feed = feed_reader,
    .done = report_error,
    .free = free_call,
    .on_close = on_close,
};
