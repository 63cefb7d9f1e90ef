// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of services: in straight code, several at once, and with a callback.
 *
 *     ask()   struct slot, on the stack of the dthread  ◄── redis_call.owner, until the reply, or the dthread leaves
 *     send()  struct callback, on the heap  ◄── redis_call.owner, and the request, until it ends
 */
#include "format.h"
#include "redis.h"

#include <duda/gc.h>
#include <duda/mem.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct redis_role redis_commands_role = {.protocol = {REDIS_PROTOCOL}};

/* ── errors ── */

static int fail_call(struct redis_client *client, int err, const char *text)
{
    if (client)
        snprintf(client->error, sizeof(client->error), "%s", text);
    return err;
}

static int fail_format(struct redis_client *client, int err)
{
    return fail_call(client, err,
                     err == -EINVAL     ? "the command has no word, or an argument is wrong"
                     : err == -EMSGSIZE ? "the command has more than 16 MB"
                                        : "no memory for the command");
}

const char *redis_error(duda_redis_t *db)
{
    struct redis_worker *w = db ? redis_worker_find(NULL) : NULL;
    const struct redis_client *client = w ? w->clients[db->index] : NULL;
    return client ? client->error : "";
}

/* Finds what the calling worker has of a server. Returns NULL with an error in *ret_err. */
static struct redis_client *find_client(const struct duda_redis *db, const char *call, int *ret_err)
{
    struct redis_worker *w = redis_worker_find(call);
    *ret_err = -EINVAL;
    if (!w || !db)
        return NULL;
    struct redis_client *client = redis_worker_client(w, db);
    *ret_err = -ENOMEM;
    return client;
}

/* ── making calls ── */

/* Checks a call that is written, and frees one that is refused. */
static struct redis_call *check_call(struct redis_client *client, struct redis_call *call, int *ret_err)
{
    char text[REDIS_TEXT_BYTES];
    const char *reason = redis_format_refuse(mk_str(call->bytes, call->len));
    if (!reason)
        return call;
    mem->free(call);
    snprintf(text, sizeof(text), "this command cannot be sent: %s", reason);
    *ret_err = fail_call(client, -EINVAL, text);
    return NULL;
}

static struct redis_call *make_call(struct redis_client *client, const struct duda_redis_arg *args, unsigned n,
                                    int *ret_err)
{
    size_t len = redis_format_measure(args, n);
    struct redis_call *call = len && len <= REDIS_COMMAND_BYTES_MAX ? redis_call_new(len, NULL, NULL) : NULL;
    if (!call) {
        *ret_err = fail_format(client, !len ? -EINVAL : len > REDIS_COMMAND_BYTES_MAX ? -EMSGSIZE : -ENOMEM);
        return NULL;
    }
    redis_format_write(call->bytes, args, n);
    return check_call(client, call, ret_err);
}

static struct redis_call *make_formatted_call(struct redis_client *client, const char *format, va_list args,
                                              int *ret_err)
{
    *ret_err = -EINVAL;
    struct mk_str bytes = format ? redis_format_text(format, args, ret_err) : MK_STR_NONE;
    struct redis_call *call = bytes.p ? redis_call_new(bytes.len, NULL, NULL) : NULL;
    if (!call) {
        *ret_err = fail_format(client, bytes.p ? -ENOMEM : *ret_err);
    } else {
        memcpy(call->bytes, bytes.p, bytes.len);
        call = check_call(client, call, ret_err);
    }
    if (bytes.p)
        redis_format_free(bytes);
    return call;
}

/* Sends a call. Returns 0, or an error with its sentence. */
static int submit_call(struct redis_client *client, struct redis_call *call)
{
    int err = redis_conn_send(&client->commands, call);
    return err < 0 ? fail_call(client, err, client->commands.up.text) : 0;
}

/* ── straight code ── */

/* What a dthread waits for. */
struct reply_wait {
    struct duda_package_wait wait;
    unsigned left; /* replies */
    int err;       /* of the first command that has failed, with its sentence */
    char text[REDIS_TEXT_BYTES];
};

struct slot {
    struct reply_wait *asked;
    struct redis_call *call; /* NULL: it is over */
    int err;
    redisReply *reply;
};

static void fill_slot(struct slot *slot, int err, redisReply *reply, const char *text)
{
    struct reply_wait *asked = slot->asked;
    slot->call = NULL;
    slot->err = err;
    slot->reply = reply;
    if (err < 0 && !asked->err) {
        asked->err = err;
        snprintf(asked->text, sizeof(asked->text), "%s", text ? text : "");
    }
    if (--asked->left == 0)
        duda_package_loader->wake(&asked->wait, 0);
}

static void finish_slot(void *owner, const struct redis_result *result)
{
    if (result->has_ended) { /* of a dthread that was abandoned: its stack is gone */
        mem->free(result->reply);
        return;
    }
    fill_slot(owner, result->err, result->reply, result->text);
}

static void begin_slot(struct redis_client *client, struct slot *slot, struct redis_call *call)
{
    call->done = finish_slot;
    call->owner = slot;
    slot->call = call;
    int err = submit_call(client, call);
    if (err < 0)
        fill_slot(slot, err, NULL, client->error);
}

/* The dthread does not wait any more: what is under way is dropped. */
static void leave_slots(struct slot *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (slots[i].call)
            slots[i].call->done = NULL;
        mem->free(slots[i].reply);
        slots[i].reply = NULL;
    }
}

/* Waits for all slots. Returns 0, or an error of the dthread's own: the slots are empty then. */
static int wait_for_slots(struct reply_wait *asked, struct slot *slots, unsigned n)
{
    int err = duda_package_loader->wait(&asked->wait, UINT32_MAX);
    if (err < 0)
        leave_slots(slots, n);
    return err;
}

static int fail_wait(struct redis_client *client, int err)
{
    return fail_call(client, err,
                     err == -ECONNABORTED ? "the request of the dthread has ended"
                     : err == -ECANCELED  ? "the dthread was cancelled"
                                          : "only a dthread can wait for the reply");
}

/* Sends a call and waits for its reply. */
static int ask_call(struct redis_client *client, struct reply_wait *asked, struct redis_call *call, redisReply **ret)
{
    struct slot slot = {.asked = asked};
    asked->left = 1;
    begin_slot(client, &slot, call);
    int err = wait_for_slots(asked, &slot, 1);
    if (err < 0)
        return fail_wait(client, err);
    if (slot.err < 0)
        return fail_call(client, slot.err, asked->text);
    if (ret)
        *ret = slot.reply;
    else
        mem->free(slot.reply);
    return 0;
}

/* Begins the wait of a call of straight code. Returns NULL with an error in *ret_err. */
static struct redis_client *begin_ask(const struct duda_redis *db, const char *call, const char *whole_call,
                                      struct reply_wait *asked, int *ret_err)
{
    struct redis_client *client = find_client(db, call, ret_err);
    if (!client)
        return NULL;
    *asked = (struct reply_wait){0};
    *ret_err = duda_package_loader->begin_wait(&asked->wait, whole_call);
    if (*ret_err == 0)
        return client;
    fail_wait(client, *ret_err);
    return NULL;
}

int redis_ask_args(duda_redis_t *db, redisReply **ret, const struct duda_redis_arg *args, unsigned n)
{
    struct reply_wait asked;
    int err;
    if (ret)
        *ret = NULL;
    struct redis_client *client = begin_ask(db, "ask_args", "redis->ask_args()", &asked, &err);
    struct redis_call *call = client ? make_call(client, args, n, &err) : NULL;
    return call ? ask_call(client, &asked, call, ret) : err;
}

int redis_ask(duda_redis_t *db, redisReply **ret, const char *format, ...)
{
    struct reply_wait asked;
    int err;
    if (ret)
        *ret = NULL;
    struct redis_client *client = begin_ask(db, "ask", "redis->ask()", &asked, &err);
    if (!client)
        return err;
    va_list args;
    va_start(args, format);
    struct redis_call *call = make_formatted_call(client, format, args, &err);
    va_end(args);
    return call ? ask_call(client, &asked, call, ret) : err;
}

/* ── several at once ── */

/* Sends each command by itself, and waits for all. */
static int ask_each(struct redis_client *client, struct reply_wait *asked, struct duda_redis_item *items, unsigned n)
{
    struct slot *slots = mem->alloc_z(n * sizeof(*slots));
    if (!slots)
        return fail_format(client, -ENOMEM);
    asked->left = n;
    for (unsigned i = 0; i < n; i++) {
        int err;
        slots[i].asked = asked;
        struct redis_call *call = make_call(client, items[i].args, items[i].n_args, &err);
        if (call)
            begin_slot(client, &slots[i], call);
        else
            fill_slot(&slots[i], err, NULL, client->error);
    }
    int err = wait_for_slots(asked, slots, n);
    for (unsigned i = 0; i < n; i++) {
        items[i].result = err < 0 ? err : slots[i].err;
        items[i].reply = slots[i].reply;
    }
    mem->free(slots);
    if (err < 0)
        return fail_wait(client, err);
    return asked->err < 0 ? fail_call(client, asked->err, asked->text) : 0;
}

/* Makes one call of MULTI, the commands and EXEC. Returns NULL with an error in *ret_err. */
static struct redis_call *make_transaction(struct redis_client *client, const struct duda_redis_item *items, unsigned n,
                                           int *ret_err)
{
    static const struct duda_redis_arg multi = {"MULTI", -1}, exec = {"EXEC", -1};
    size_t len = redis_format_measure(&multi, 1) + redis_format_measure(&exec, 1);
    for (unsigned i = 0; i < n && len <= REDIS_COMMAND_BYTES_MAX; i++) {
        struct redis_call *one = make_call(client, items[i].args, items[i].n_args, ret_err);
        if (!one)
            return NULL;
        len += one->len;
        mem->free(one);
    }
    struct redis_call *call = len <= REDIS_COMMAND_BYTES_MAX ? redis_call_new(len, NULL, NULL) : NULL;
    if (!call) {
        *ret_err = fail_format(client, len > REDIS_COMMAND_BYTES_MAX ? -EMSGSIZE : -ENOMEM);
        return NULL;
    }
    char *to = redis_format_write(call->bytes, &multi, 1);
    for (unsigned i = 0; i < n; i++)
        to = redis_format_write(to, items[i].args, items[i].n_args);
    redis_format_write(to, &exec, 1);
    call->replies = n + 2;
    return call;
}

/* Copies a reply into a separate block; an error becomes the result. */
static void copy_reply(struct duda_redis_item *item, const redisReply *from)
{
    if (from->type == REDIS_REPLY_ERROR)
        item->result = redis_status_of(from->str);
    else
        item->reply = redis_reader_copy(from);
    if (item->result == 0 && !item->reply)
        item->result = -ENOMEM;
}

static int ask_atomic(struct redis_client *client, struct reply_wait *asked, struct duda_redis_item *items, unsigned n)
{
    redisReply *reply = NULL;
    int err = -EINVAL;
    struct redis_call *call = make_transaction(client, items, n, &err);
    if (call)
        err = ask_call(client, asked, call, &reply);
    if (err == 0 && (reply->type != REDIS_REPLY_ARRAY || reply->elements != n))
        err = fail_call(client, -EPROTO, "the reply to EXEC does not have the replies of all commands");
    for (unsigned i = 0; i < n; i++) {
        items[i].result = err;
        if (err == 0)
            copy_reply(&items[i], reply->element[i]);
    }
    for (unsigned i = 0; i < n && err == 0; i++)
        if (items[i].result < 0)
            err = fail_call(client, items[i].result,
                            reply->element[i]->type == REDIS_REPLY_ERROR ? reply->element[i]->str : "no memory");
    mem->free(reply);
    return err;
}

int redis_ask_all(duda_redis_t *db, struct duda_redis_item *items, unsigned n, bool atomic)
{
    struct reply_wait asked;
    int err = -EINVAL;
    for (unsigned i = 0; items && i < n; i++) {
        items[i].reply = NULL;
        items[i].result = -EINVAL;
    }
    struct redis_client *client = begin_ask(db, "ask_all", "redis->ask_all()", &asked, &err);
    if (!client)
        return err;
    if (!items || !n || n > DUDA_REDIS_ITEMS_MAX)
        return fail_call(client, -EINVAL, "ask_all() takes 1 to 1024 commands");
    return atomic ? ask_atomic(client, &asked, items, n) : ask_each(client, &asked, items, n);
}

/* ── callbacks ── */

struct callback {
    struct redis_client *client;
    duda_request_t *dr; /* NULL: it has ended, or there is none */
    duda_redis_fn fn;
    void *data;
    unsigned refs; /* of the call, and of the request */
    const struct redis_result *result;
};

static void put_callback(struct callback *callback)
{
    if (--callback->refs == 0)
        mem->free(callback);
}

static void leave_request(void *ptr)
{
    struct callback *callback = ptr;
    callback->dr = NULL;
    put_callback(callback);
}

static void call_service(void *data)
{
    struct callback *callback = data;
    const struct redis_result *result = callback->result;
    void (*name)(void);
    *(duda_redis_fn *)&name = callback->fn;
    fail_call(callback->client, 0, result->text ? result->text : "");
    duda_package_loader->name_callback(callback->client->commands.worker->base, name);
    callback->fn(callback->dr, result->err, result->reply, callback->data);
}

static void finish_callback(void *owner, const struct redis_result *result)
{
    struct callback *callback = owner;
    callback->result = result;
    if (callback->fn)
        duda_package_loader->call(callback->client->commands.worker->base, call_service, callback);
    mem->free(result->reply);
    put_callback(callback);
}

/* Sends a call whose result is passed to a function. */
static int send_call(struct redis_client *client, struct redis_call *call, duda_request_t *dr, duda_redis_fn fn,
                     void *data)
{
    struct callback *callback = mem->alloc(sizeof(*callback));
    if (!callback) {
        mem->free(call);
        return fail_format(client, -ENOMEM);
    }
    *callback = (struct callback){.client = client, .dr = dr, .fn = fn, .data = data, .refs = 1};
    if (dr && gc->add_destroy(dr, callback, leave_request) < 0) {
        mem->free(call);
        mem->free(callback);
        return fail_call(client, -EINVAL, "the request has ended");
    }
    callback->refs += dr != NULL;
    call->done = finish_callback;
    call->owner = callback;
    int err = submit_call(client, call);
    if (err < 0)
        put_callback(callback);
    return err;
}

int redis_send_args(duda_redis_t *db, duda_request_t *dr, duda_redis_fn fn, void *data,
                    const struct duda_redis_arg *args, unsigned n)
{
    int err;
    struct redis_client *client = find_client(db, "send_args", &err);
    struct redis_call *call = client ? make_call(client, args, n, &err) : NULL;
    return call ? send_call(client, call, dr, fn, data) : err;
}

int redis_send(duda_redis_t *db, duda_request_t *dr, duda_redis_fn fn, void *data, const char *format, ...)
{
    int err;
    struct redis_client *client = find_client(db, "send", &err);
    if (!client)
        return err;
    va_list args;
    va_start(args, format);
    struct redis_call *call = make_formatted_call(client, format, args, &err);
    va_end(args);
    return call ? send_call(client, call, dr, fn, data) : err;
}
