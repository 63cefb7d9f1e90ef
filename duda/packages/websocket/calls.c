// SPDX-License-Identifier: Apache-2.0
/*
 * What services call for a WebSocket or a channel: checks each call, and passes it on.
 */
#include "websocket.h"

#include <string.h>

static_assert((int)WS_AGAIN == (int)MK_AGAIN && (int)WS_OPCODE_TEXT == (int)MK_WS_TEXT &&
                  (int)WS_OPCODE_BINARY == (int)MK_WS_BINARY && (int)WS_OPCODE_PING == (int)MK_WS_PING &&
                  (int)WS_OPCODE_PONG == (int)MK_WS_PONG,
              "values are passed on as they are");

/* ── checks ── */

/*
 * Returns the struct of a WebSocket of this worker that has not ended; or NULL with the reason in `*ret`, which is
 * logged.
 */
static struct ws_conn *find_conn(const ws_request_t *wr, const char *call, enum ws_result *ret)
{
    struct ws_worker *w = ws_find_worker();
    struct ws_conn *conn = (struct ws_conn *)(uintptr_t)wr; /* wr is its first field, and ours to change */
    if (MK_UNLIKELY(!wr))
        *ret = ws_refuse(w, call, WS_INVALID, "the WebSocket is NULL");
    else if (MK_UNLIKELY(!w || conn->worker != w))
        *ret = ws_refuse(w, call, WS_WRONG_THREAD,
                         "it works only in callbacks of the worker of the WebSocket; the call did nothing");
    else if (MK_UNLIKELY(!conn->ws))
        *ret = ws_refuse(w, call, WS_ENDED, "the WebSocket has ended");
    else
        return conn;
    return NULL;
}

/* Returns the service whose code runs in this thread, or NULL if the framework does not know it. */
static struct ws_service *get_service(void)
{
    struct ws_worker *w = ws_find_worker();
    return w ? w->service : duda_package_loader->service_state(&ws_package);
}

/* The same; NULL is logged. */
static struct ws_service *find_service(const char *call)
{
    struct ws_service *service = get_service();
    if (!service)
        ws_refuse(NULL, call, WS_WRONG_THREAD,
                  "it works only in callbacks and in threads of worker->spawn(); the call did nothing");
    return service;
}

/* Tells whether this is the message that has been received, whose text was checked. */
static bool is_received(const struct ws_conn *conn, const void *data, size_t len)
{
    return conn && conn->wr.opcode == WS_OPCODE_TEXT && data == conn->wr.payload && len == conn->wr.payload_len;
}

/* Checks a message, which may come from a WebSocket. Returns WS_OK or WS_INVALID, which is logged. */
static enum ws_result check_message(const struct ws_conn *from, const char *call, int opcode, const void *data,
                                    size_t len)
{
    const char *wrong = NULL;
    if (!data && len)
        wrong = "the data is NULL";
    else if (opcode == WS_OPCODE_TEXT && !is_received(from, data, len) && !mk_ws_is_utf8(data, len))
        wrong = "the text is not UTF-8, as browsers want it: send it as WS_OPCODE_BINARY; it was not sent";
    return wrong ? ws_refuse(ws_find_worker(), call, WS_INVALID, wrong) : WS_OK;
}

static bool is_data(int opcode)
{
    return opcode == WS_OPCODE_TEXT || opcode == WS_OPCODE_BINARY;
}

static enum ws_result refuse_opcode(const char *call)
{
    return ws_refuse(ws_find_worker(), call, WS_INVALID, "messages with this opcode cannot be sent");
}

/* ── one WebSocket ── */

static enum ws_result send_message(struct ws_conn *conn, const char *call, int opcode, const void *data, size_t len)
{
    if (!is_data(opcode) && opcode != WS_OPCODE_PING && opcode != WS_OPCODE_PONG)
        return refuse_opcode(call);
    enum ws_result r = check_message(conn, call, opcode, data, len);
    if (r == WS_OK)
        r = (enum ws_result)mk_ws_send(conn->ws, (enum mk_ws_opcode)opcode, data, len);
    if (r >= 0 && is_data(opcode))
        duda_package_loader->count(conn->worker->base, conn->worker->service->counters.sent, 1);
    return r;
}

enum ws_result ws_send(ws_request_t *wr, int opcode, const void *data, size_t len)
{
    enum ws_result r;
    struct ws_conn *conn = find_conn(wr, "send", &r);
    return conn ? send_message(conn, "send", opcode, data, len) : r;
}

static bool is_code(unsigned code)
{
    return code == 0 || (code >= 3000 && code <= 4999) ||
           (code >= 1000 && code <= 1014 && (code < 1004 || code > MK_WS_ABNORMAL));
}

static enum ws_result check_close(struct ws_worker *w, const char *call, unsigned code, struct mk_str reason)
{
    if (!is_code(code))
        return ws_refuse(w, call, WS_INVALID, "the code is none of 0, 1000 to 1014 and 3000 to 4999");
    if (!mk_ws_is_utf8(reason.p, reason.len))
        return ws_refuse(w, call, WS_INVALID, "the reason is not UTF-8");
    return WS_OK;
}

static enum ws_result close_conn(struct ws_conn *conn, const char *call, unsigned code, struct mk_str reason)
{
    enum ws_result r = check_close(conn->worker, call, code, reason);
    if (r == WS_OK)
        mk_ws_close(conn->ws, code, reason);
    return r;
}

enum ws_result ws_close(ws_request_t *wr, unsigned code, const char *reason)
{
    enum ws_result r;
    struct ws_conn *conn = find_conn(wr, "close", &r);
    return conn ? close_conn(conn, "close", code, reason ? mk_str_c(reason) : MK_STR_NONE) : r;
}

/* Closes with the payload of a close frame. */
static enum ws_result write_close(struct ws_conn *conn, const unsigned char *data, size_t len)
{
    if (len == 0)
        return close_conn(conn, "write", 0, MK_STR_NONE);
    if (len == 1 || !data)
        return ws_refuse(conn->worker, "write", WS_INVALID, "a close frame begins with the two bytes of a code");
    return close_conn(conn, "write", (unsigned)data[0] << 8 | data[1], mk_str((const char *)data + 2, len - 2));
}

int ws_write(ws_request_t *wr, unsigned int opcode, const unsigned char *data, uint64_t len)
{
    enum ws_result r;
    struct ws_conn *conn = find_conn(wr, "write", &r);
    if (conn && opcode == WS_OPCODE_CLOSE)
        r = write_close(conn, data, (size_t)len);
    else if (conn)
        r = send_message(conn, "write", (int)opcode, data, (size_t)len);
    return r < 0 ? -1 : 0;
}

enum ws_result ws_pause(ws_request_t *wr)
{
    enum ws_result r = WS_OK;
    struct ws_conn *conn = find_conn(wr, "pause", &r);
    if (conn)
        mk_ws_pause(conn->ws);
    return r;
}

enum ws_result ws_resume(ws_request_t *wr)
{
    enum ws_result r = WS_OK;
    struct ws_conn *conn = find_conn(wr, "resume", &r);
    if (conn)
        mk_ws_resume(conn->ws);
    return r;
}

const char *ws_protocol(const ws_request_t *wr)
{
    enum ws_result r;
    struct ws_conn *conn = find_conn(wr, "protocol", &r);
    struct mk_str name = conn ? mk_ws_protocol(conn->ws) : MK_STR_NONE;
    if (!name.len)
        return "";
    char *copy = conn->endpoint->protocols + (name.p - conn->endpoint->list);
    return copy;
}

size_t ws_queued(const ws_request_t *wr)
{
    enum ws_result r;
    struct ws_conn *conn = find_conn(wr, "queued", &r);
    return conn && !conn->is_closed ? mk_ws_queued_bytes(conn->ws) : 0;
}

/* ── channels ── */

/* Returns the number of a channel, for which services may say any number below 0 instead of WS_CHANNEL_ALL. */
static int limit_number(int channel)
{
    return channel < 0 ? WS_CHANNEL_ALL : channel;
}

/* Moves a WebSocket to a channel, which has a name or none. Takes the reference of the name over. */
static enum ws_result move_conn(struct ws_conn *conn, int channel, struct ws_name *name)
{
    struct ws_service *service = conn->worker->service;
    bool has_joined = channels_join(&service->channels, channel);
    if (!has_joined || mk_ws_set_channel(conn->ws, channel) < 0) {
        if (has_joined)
            channels_leave(&service->channels, channel);
        ws_names_put(&service->names, name);
        return WS_NO_MEMORY;
    }
    ws_conn_leave_channel(conn);
    conn->channel = channel;
    conn->name = name;
    conn->wr.channel = name ? WS_CHANNEL_ALL : channel;
    return WS_OK;
}

/* Returns a WebSocket that can be moved; or NULL with the reason in `*ret`. */
static struct ws_conn *find_member(ws_request_t *wr, const char *call, enum ws_result *ret)
{
    struct ws_conn *conn = find_conn(wr, call, ret);
    if (!conn)
        return NULL;
    if (conn->is_closed)
        *ret = WS_CLOSED;
    else if (!conn->wr.dr)
        *ret = ws_refuse(conn->worker, call, WS_INVALID, "a WebSocket of connect() is in no channel");
    else
        return conn;
    return NULL;
}

enum ws_result ws_set_channel(ws_request_t *wr, int channel)
{
    enum ws_result r;
    struct ws_conn *conn = find_member(wr, "set_channel", &r);
    return conn ? move_conn(conn, limit_number(channel), NULL) : r;
}

/* Returns WS_OK or WS_INVALID, which is logged. */
static enum ws_result check_name(const char *name, const char *call)
{
    size_t n = name ? strnlen(name, WS_NAME_BYTES + 1) : 0;
    return n > 0 && n <= WS_NAME_BYTES
               ? WS_OK
               : ws_refuse(ws_find_worker(), call, WS_INVALID, "the name of the channel is NULL, empty or too long");
}

enum ws_result ws_join(ws_request_t *wr, const char *name)
{
    enum ws_result r;
    struct ws_conn *conn = find_member(wr, "join", &r);
    if (!conn || (r = check_name(name, "join")) != WS_OK)
        return r;
    struct ws_service *service = conn->worker->service;
    struct ws_name *own = ws_names_get(&service->names, &service->channels, name);
    return own ? move_conn(conn, own->number, own) : WS_NO_MEMORY;
}

/* Sends a message to a channel, except to `except`, which may be NULL. */
static enum ws_result broadcast_message(struct ws_service *service, const char *call, int channel, int opcode,
                                        const void *data, size_t len, const struct ws_conn *except)
{
    if (!is_data(opcode))
        return refuse_opcode(call);
    enum ws_result r = check_message(except, call, opcode, data, len);
    if (r != WS_OK)
        return r;
    const struct mk_ws *sender = except && except->wr.dr && !except->is_closed ? except->ws : NULL;
    r = (enum ws_result)mk_ws_broadcast(service->group, channel, (enum mk_ws_opcode)opcode, data, len, sender);
    const struct ws_worker *w = ws_find_worker();
    if (r >= 0)
        duda_package_loader->count(w ? w->base : NULL, service->counters.broadcasts, 1);
    return r;
}

enum ws_result ws_publish(int channel, int opcode, const void *data, size_t len, const ws_request_t *except)
{
    enum ws_result r = WS_WRONG_THREAD;
    struct ws_conn *conn = except ? find_conn(except, "publish", &r) : NULL;
    if (except && !conn)
        return r;
    struct ws_service *service = find_service("publish");
    return service ? broadcast_message(service, "publish", limit_number(channel), opcode, data, len, conn)
                   : WS_WRONG_THREAD;
}

enum ws_result ws_publish_to(const char *name, int opcode, const void *data, size_t len, const ws_request_t *except)
{
    static const char call[] = "publish_to";
    enum ws_result r = WS_WRONG_THREAD;
    struct ws_conn *conn = except ? find_conn(except, call, &r) : NULL;
    if (except && !conn)
        return r;
    struct ws_service *service = find_service(call);
    if (!service || (r = check_name(name, call)) != WS_OK)
        return r;
    int number = ws_names_find(&service->names, name);
    return number == WS_CHANNEL_ALL ? WS_OK : broadcast_message(service, call, number, opcode, data, len, conn);
}

enum ws_result ws_close_channel(const char *name, unsigned code, const char *reason)
{
    static const char call[] = "close_channel";
    struct ws_service *service = find_service(call);
    struct mk_str text = reason ? mk_str_c(reason) : MK_STR_NONE;
    enum ws_result r = service ? check_name(name, call) : WS_WRONG_THREAD;
    if (r == WS_OK)
        r = check_close(ws_find_worker(), call, code, text);
    int number = r == WS_OK ? ws_names_find(&service->names, name) : WS_CHANNEL_ALL;
    return number == WS_CHANNEL_ALL ? r : (enum ws_result)mk_ws_broadcast_close(service->group, number, code, text);
}

size_t ws_count_in(const char *name)
{
    struct ws_service *service = find_service("count_in");
    int number =
        service && check_name(name, "count_in") == WS_OK ? ws_names_find(&service->names, name) : WS_CHANNEL_ALL;
    return number == WS_CHANNEL_ALL ? 0 : channels_count(&service->channels, number);
}

int ws_broadcast(ws_request_t *wr, const unsigned char *data, uint64_t len, int opcode, int channel)
{
    enum ws_result r;
    struct ws_conn *conn = find_conn(wr, "broadcast", &r);
    if (conn)
        r = broadcast_message(conn->worker->service, "broadcast", limit_number(channel), opcode, data, (size_t)len,
                              conn);
    return r < 0 ? -1 : 0;
}

int ws_broadcast_all(const unsigned char *data, uint64_t len, int opcode, int channel)
{
    static const char call[] = "broadcast_all";
    struct ws_service *known = get_service(), *service = known ? known : ws_origin_get(__builtin_return_address(0));
    if (!service) {
        ws_refuse(NULL, call, WS_WRONG_THREAD, "the service of this thread is unknown: see worker->spawn()");
        return -1;
    }
    enum ws_result r = broadcast_message(service, call, limit_number(channel), opcode, data, (size_t)len, NULL);
    if (!known)
        ws_origin_put();
    return r < 0 ? -1 : 0;
}

size_t ws_count(int channel)
{
    struct ws_service *service = find_service("count");
    if (!service)
        return 0;
    return channel < 0 ? mk_ws_group_count(service->group) : channels_count(&service->channels, channel);
}
