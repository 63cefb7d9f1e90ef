// SPDX-License-Identifier: Apache-2.0
/*
 * Messages of channels: a separate connection, which subscribes whenever it is made. It asks for a sign of life while
 * nothing comes: a connection that was cut without a word is so noticed.
 */
#include "redis.h"

#include <duda/mem.h>
#include <duda/msg.h>

#include <errno.h>
#include <string.h>

enum { PING_MS = 10000 };

/* Returns whether this worker receives the messages of a subscription. */
static bool is_here(const struct redis_conn *conn, const struct redis_subscription *s)
{
    return !(s->flags & DUDA_REDIS_ONE_WORKER) || conn->worker->base->index == 0;
}

static struct redis_client *client_of(struct redis_conn *conn)
{
    return MK_CONTAINER_OF(conn, struct redis_client, messages);
}

static void arm_ping(struct redis_client *client)
{
    client->has_life = false;
    mk_timer_arm(client->messages.worker->loop, &client->ping, PING_MS);
}

static void subscribe_all(struct mk_upstream_conn *base)
{
    struct redis_conn *conn = redis_conn_of(base);
    const struct duda_redis *db = conn->owner;
    for (const struct redis_subscription *s = db->subscriptions; s; s = s->next) {
        const char *command = s->flags & DUDA_REDIS_PATTERN ? "PSUBSCRIBE" : "SUBSCRIBE";
        if (!is_here(conn, s))
            continue;
        if (redis_conn_push(conn, (const struct duda_redis_arg[]){{command, -1}, {s->channel, -1}}, 2) < 0)
            msg->err("redis->subscribe(): no memory; the messages of %s are missing", s->channel);
    }
    arm_ping(client_of(conn));
}

/* PING_MS after the last look. */
static void check_life(void *data)
{
    struct redis_client *client = data;
    struct redis_conn *conn = &client->messages;
    if (conn->base.state != MK_UPSTREAM_READY)
        return; /* it is armed again when it is */
    if (!client->has_life) {
        mk_upstream_fail(&conn->base, -ETIMEDOUT, "the connection for messages does not reply", false);
        return;
    }
    redis_conn_push(conn, (const struct duda_redis_arg[]){{"PING", -1}}, 1);
    arm_ping(client);
}

void redis_subscribe_ping(struct mk_timer *timer)
{
    struct redis_client *client = MK_CONTAINER_OF(timer, struct redis_client, ping);
    duda_package_loader->call(client->messages.worker->base, check_life, client);
}

/* ── messages ── */

struct message {
    const struct redis_subscription *subscription;
    const redisReply *channel, *text;
    struct duda_package_worker *base;
};

static void call_service(void *data)
{
    const struct message *m = data;
    void (*name)(void);
    *(duda_redis_message_fn *)&name = m->subscription->fn;
    duda_package_loader->name_callback(m->base, name);
    m->subscription->fn(m->channel->str, m->text->str, m->text->len, m->subscription->data);
}

static bool has_strings(const redisReply *reply, size_t n)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (!reply->element[i]->str)
            return false;
    return true;
}

/* Calls the functions of a message. `name` is that of the subscription: the channel or its pattern. */
static void deliver_message(struct redis_conn *conn, bool is_pattern, const redisReply *name, const redisReply *channel,
                            const redisReply *text)
{
    const struct duda_redis *db = conn->owner;
    for (const struct redis_subscription *s = db->subscriptions; s; s = s->next) {
        struct message m = {s, channel, text, conn->worker->base};
        bool is_same = !(s->flags & DUDA_REDIS_PATTERN) == !is_pattern && strlen(s->channel) == name->len &&
                       memcmp(s->channel, name->str, name->len) == 0;
        if (is_same && is_here(conn, s))
            duda_package_loader->call(conn->worker->base, call_service, &m);
    }
}

static bool take_reply(struct redis_conn *conn, redisReply *reply)
{
    client_of(conn)->has_life = true;
    if (reply->type == REDIS_REPLY_ERROR)
        mk_upstream_fail(&conn->base, redis_status_of(reply->str), reply->str, false);
    else if (has_strings(reply, 3) && strcmp(reply->element[0]->str, "message") == 0)
        deliver_message(conn, false, reply->element[1], reply->element[1], reply->element[2]);
    else if (has_strings(reply, 4) && strcmp(reply->element[0]->str, "pmessage") == 0)
        deliver_message(conn, true, reply->element[1], reply->element[2], reply->element[3]);
    mem->free(reply); /* others tell that a channel was subscribed to, or that the server lives */
    return true;
}

const struct redis_role redis_messages_role = {
    .protocol = {REDIS_PROTOCOL, .on_ready = subscribe_all, .is_lasting = true},
    .on_reply = take_reply,
};

/* ── subscribing ── */

int redis_subscribe(duda_redis_t *db, const char *channel, unsigned flags, duda_redis_message_fn fn, void *data)
{
    struct redis_service *service = redis_service_find("subscribe");
    if (!service)
        return -EINVAL;
    if (!db || !channel || !*channel || !fn || flags > (DUDA_REDIS_PATTERN | DUDA_REDIS_ONE_WORKER)) {
        msg->err("redis->subscribe(): an argument is wrong");
        return -EINVAL;
    }
    struct redis_subscription *s = mk_arena_zalloc(&service->arena, sizeof(*s));
    const char *copy = mk_arena_dup(&service->arena, mk_str_c(channel)).p;
    if (!s || !copy) {
        msg->err("redis->subscribe(): no memory for further channels");
        return -ENOMEM;
    }
    *s = (struct redis_subscription){db->subscriptions, copy, flags, fn, data};
    db->subscriptions = s;
    return 0;
}

int redis_subscribe_start(struct redis_worker *w)
{
    for (const struct duda_redis *db = w->service->first; db; db = db->next) {
        bool is_needed = false;
        for (const struct redis_subscription *s = db->subscriptions; s && !is_needed; s = s->next)
            is_needed = !(s->flags & DUDA_REDIS_ONE_WORKER) || w->base->index == 0;
        struct redis_client *client = is_needed ? redis_worker_client(w, db) : NULL;
        if (is_needed && !client)
            return -ENOMEM;
        if (client)
            mk_upstream_connect(&client->messages.base);
    }
    return 0;
}
