// SPDX-License-Identifier: Apache-2.0
/*
 * The package websocket: what it has for each service and worker, and what duda_main() calls.
 */
#include "websocket.h"

#include <errno.h>
#include <string.h>

enum { API_ERROR_INTERVAL_MS = 10000, DATA_BYTES_MAX = 64 << 20 };

/* ── mistakes ── */

/* Returns whether a line may be written now; counts those that may not. */
static bool may_log(struct ws_worker *w)
{
    if (!w || !w->base->loop)
        return true;
    uint64_t now_ms = mk_loop_now_ms(w->base->loop);
    if (w->api_error_ms && now_ms - w->api_error_ms < API_ERROR_INTERVAL_MS) {
        w->missing++;
        return false;
    }
    w->api_error_ms = now_ms ? now_ms : 1;
    return true;
}

enum ws_result ws_refuse(struct ws_worker *w, const char *call, enum ws_result result, const char *reason)
{
    if (!may_log(w))
        return result;
    if (w && w->missing)
        msg->warn("websocket->%s(): %s (%u mistakes before were not logged)", call, reason, w->missing);
    else
        msg->warn("websocket->%s(): %s", call, reason);
    if (w)
        w->missing = 0;
    return result;
}

struct ws_worker *ws_find_worker(void)
{
    struct duda_package_worker *base = duda_package_loader->worker(&ws_package);
    return base ? base->state : NULL;
}

/* Returns the service whose duda_main() runs, or NULL, which is logged. */
static struct ws_service *find_in_main(const char *call)
{
    struct ws_service *service = duda_package_loader->service_state(&ws_package);
    if (service && !atomic_load(&service->started))
        return service;
    ws_refuse(ws_find_worker(), call, WS_WRONG_THREAD, "it works only in duda_main(); the call did nothing");
    return NULL;
}

/* ── endpoints ── */

static char *dup_text(const char *text)
{
    char *copy = text ? mem->alloc(strlen(text) + 1) : NULL;
    if (copy)
        memcpy(copy, text, strlen(text) + 1);
    return copy;
}

/* Replaces what separates the elements of a list, so that each is a string; NULL is left alone. */
static void split_list(char *list)
{
    for (size_t n = list ? strlen(list) : 0; n-- > 0;)
        if (list[n] == ',' || list[n] == ' ' || list[n] == '\t')
            list[n] = '\0';
}

static void free_endpoint(struct ws_endpoint *e)
{
    mem->free(e->protocols);
    mem->free(e->origins);
    mem->free(e->list);
    mem->free(e);
}

static void free_endpoints(struct ws_endpoint *first)
{
    for (struct ws_endpoint *e = first, *next; e; e = next) {
        next = e->next;
        free_endpoint(e);
    }
}

/* Returns what is wrong with the settings, or NULL. */
static const char *check_settings(const struct ws_settings *s)
{
    if (s->window_bits && (s->window_bits < 9 || s->window_bits > 15))
        return "window_bits is from 9 to 15";
    if (s->level > 9)
        return "level is from 1 to 9";
    if (s->overflow != WS_OVERFLOW_CLOSE && s->overflow != WS_OVERFLOW_DROP)
        return "overflow is none of enum ws_overflow";
    if (s->message_bytes_max > DATA_BYTES_MAX || s->frame_bytes_max > DATA_BYTES_MAX)
        return "messages and frames have 64 MB at most";
    return NULL;
}

static void copy_callbacks(struct ws_endpoint *e, const struct ws_settings *s)
{
    e->callbacks[WS_ON_OPEN] = s->on_open;
    e->callbacks[WS_ON_MESSAGE] = s->on_message;
    e->callbacks[WS_ON_ERROR] = s->on_error;
    e->callbacks[WS_ON_CLOSE] = s->on_close;
    e->callbacks[WS_ON_TIMEOUT] = s->on_timeout;
    e->callbacks[WS_ON_WRITABLE] = s->on_writable;
}

/* Copies settings. Returns false without memory. */
static bool copy_settings(struct ws_endpoint *e, const struct ws_settings *s)
{
    copy_callbacks(e, s);
    e->protocols = dup_text(s->protocols);
    e->list = dup_text(s->protocols);
    e->origins = dup_text(s->origins);
    split_list(e->protocols);
    e->settings = (struct mk_ws_settings){
        .handlers = ws_handlers,
        .message_bytes_max = s->message_bytes_max,
        .frame_bytes_max = s->frame_bytes_max,
        .queue_bytes_max = s->queue_bytes_max,
        .overflow = s->overflow == WS_OVERFLOW_DROP ? MK_WS_OVERFLOW_DROP : MK_WS_OVERFLOW_CLOSE,
        .ping_ms = s->ping_ms,
        .pong_ms = s->pong_ms,
        .close_ms = s->close_ms,
        .protocols = e->list,
        .origins = e->origins,
        .no_deflate = s->no_deflate,
        .context_takeover = s->context_takeover,
        .window_bits = s->window_bits,
        .level = s->level,
        .deflate_bytes_min = s->deflate_bytes_min,
    };
    return (!s->protocols || (e->protocols && e->list)) && (!s->origins || e->origins);
}

static ws_endpoint_t *make_endpoint(const struct ws_settings *settings)
{
    struct ws_service *service = find_in_main("endpoint");
    if (!service)
        return NULL;
    const char *wrong = settings ? check_settings(settings) : "the settings are NULL";
    if (wrong) {
        ws_refuse(NULL, "endpoint", WS_INVALID, wrong);
        return NULL;
    }
    struct ws_endpoint *e = mem->alloc_z(sizeof(*e));
    if (e && !copy_settings(e, settings)) {
        free_endpoint(e);
        e = NULL;
    }
    if (!e)
        return NULL;
    e->next = service->endpoint.next;
    service->endpoint.next = e;
    return e;
}

static int set_callback(int type, ws_callback_t fn)
{
    struct ws_service *service = find_in_main("set_callback");
    if (!service)
        return -1;
    ws_origin_set(&service->origin, __builtin_return_address(0));
    if (type < WS_ON_OPEN || type > WS_ON_TIMEOUT) {
        ws_refuse(NULL, "set_callback", WS_INVALID, "the type is none of WS_ON_...");
        return -1;
    }
    service->endpoint.callbacks[type] = fn;
    return 0;
}

static int start_broadcaster(void)
{
    struct ws_service *service = find_in_main("broadcaster");
    if (service)
        ws_origin_set(&service->origin, __builtin_return_address(0));
    return service ? 0 : -1;
}

/* ── services and workers ── */

static void stop_service(void *state)
{
    struct ws_service *service = state;
    ws_origin_remove(&service->origin);
    free_endpoints(service->endpoint.next);
    mk_ws_group_free(service->group);
    mk_ws_group_free(service->clients);
    channels_release(&service->channels);
    ws_names_release(&service->names);
    mem->free(service);
}

static const struct mk_counter *open_counter(const char *name, const char *help, bool is_level)
{
    return duda_package_loader->counter(&ws_package, name, help, is_level);
}

static void open_counters(struct ws_service *service)
{
    service->counters = (struct ws_counters){
        .open = open_counter("websocket_connections", "open WebSockets, by host and service", true),
        .received =
            open_counter("websocket_received_messages", "messages received by WebSockets, by host and service", false),
        .sent = open_counter("websocket_sent_messages", "messages sent to one WebSocket, by host and service", false),
        .broadcasts = open_counter("websocket_broadcasts", "messages sent to channels, by host and service", false),
    };
}

static void *start_service(void)
{
    struct ws_service *service = mem->alloc_z(sizeof(*service));
    if (!service)
        return NULL;
    open_counters(service);
    channels_init(&service->channels,
                  open_counter("websocket_channels", "channels that have a WebSocket, by host and service", true));
    ws_origin_add(&service->origin, service);
    service->endpoint.settings.handlers = ws_handlers;
    service->group = mk_ws_group_new();
    service->clients = mk_ws_group_new();
    int err = ws_names_init(&service->names);
    if (service->group && service->clients && err == 0)
        return service;
    stop_service(service);
    errno = err ? -err : ENOMEM;
    return NULL;
}

/* The library calls handlers in timers and deliveries by this. */
static void call_service(void *ctx, void (*fn)(void *arg), void *arg)
{
    duda_package_loader->call(ctx, fn, arg);
}

struct mk_ws_worker *ws_get_worker(struct duda_package_worker *base, struct mk_ws_group *group)
{
    return mk_ws_worker_get(group, base->loop, base->account, call_service, base);
}

static int start_worker(struct duda_package_worker *base)
{
    struct ws_service *service = base->service_state;
    struct ws_worker *w = mem->alloc_z(sizeof(*w));
    if (!w)
        return -ENOMEM;
    *w = (struct ws_worker){.base = base, .service = service, .server = ws_get_worker(base, service->group)};
    mk_list_init(&w->clients);
    if (!w->server) {
        mem->free(w);
        return -ENOMEM;
    }
    atomic_store(&service->started, true);
    base->state = w;
    return 0;
}

static void stop_worker(struct duda_package_worker *base)
{
    struct ws_worker *w = base->state;
    ws_connect_stop(w);
    base->state = NULL;
    mk_ws_worker_put(w->server);
    if (w->client)
        mk_ws_worker_put(w->client);
    ws_conn_release(w);
    free_endpoints(w->endpoints);
    mem->free(w);
}

static const struct duda_api_websocket table = {
    .set_callback = set_callback,
    .handshake = ws_handshake,
    .write = ws_write,
    .broadcaster = start_broadcaster,
    .broadcast = ws_broadcast,
    .broadcast_all = ws_broadcast_all,
    .endpoint = make_endpoint,
    .accept = ws_accept,
    .connect = ws_connect,
    .send = ws_send,
    .publish = ws_publish,
    .close = ws_close,
    .pause = ws_pause,
    .resume = ws_resume,
    .set_channel = ws_set_channel,
    .count = ws_count,
    .protocol = ws_protocol,
    .queued = ws_queued,
    .join = ws_join,
    .publish_to = ws_publish_to,
    .count_in = ws_count_in,
    .close_channel = ws_close_channel,
    .handshake_with = ws_handshake_with,
};

DUDA_PACKAGE_MAIN(ws_package, "websocket", "2.0.0", &table, .service_start = start_service,
                  .service_stop = stop_service, .worker_start = start_worker, .worker_stop = stop_worker)
