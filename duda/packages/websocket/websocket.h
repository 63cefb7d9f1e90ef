// SPDX-License-Identifier: Apache-2.0
/*
 * The structs of the package websocket, which is the library <monkey/kit/websocket.h> on the object `tunnel`.
 *
 *     service    struct ws_service    group, callbacks, endpoints, how many each channel has
 *     worker     struct ws_worker     its share of the group, the memory of its WebSockets
 *     WebSocket  struct ws_conn       the ws_request_t that services see, and its struct mk_ws
 */
#ifndef DUDA_PACKAGES_WEBSOCKET_WEBSOCKET_H
#define DUDA_PACKAGES_WEBSOCKET_WEBSOCKET_H

#include <duda/mem.h>
#include <duda/msg.h>
#include <duda/packages/websocket/websocket.h>
#include <monkey/kit/websocket.h>
#include <monkey/tunnel.h>

#include "channels.h"
#include "origin.h"

#include <stdatomic.h>

enum { WS_ON_WRITABLE = WS_ON_TIMEOUT + 1, WS_CALLBACKS };

struct ws_endpoint {
    struct ws_endpoint *next;
    ws_callback_t callbacks[WS_CALLBACKS];
    struct mk_ws_settings settings;
    char *protocols; /* a copy of the subprotocols, each with a NUL after it; or NULL */
    char *origins;   /* or NULL */
    char *list;      /* settings.protocols, or NULL */
};

/* What is counted of a service; each may be NULL. The channels are counted in struct channels. */
struct ws_counters {
    const struct mk_counter *open, *received, *sent, *broadcasts;
};

struct ws_service {
    atomic_bool started;         /* in a worker: duda_main() is over */
    struct ws_endpoint endpoint; /* of handshake(); the first of the list */
    struct mk_ws_group *group;
    struct mk_ws_group *clients; /* those of connect(), which get no broadcasts */
    struct channels channels;
    struct ws_names names; /* of channels */
    struct ws_origin origin;
    struct ws_counters counters;
};

struct ws_worker {
    struct duda_package_worker *base;
    struct ws_service *service;
    struct mk_ws_worker *server;
    struct mk_ws_worker *client; /* NULL before the first connect() */
    struct ws_slab *slabs;
    struct ws_endpoint *endpoints; /* of handshake_with(): one for each five callbacks that a service has used */
    struct ws_conn *unused;        /* linked by next_unused */
    struct mk_list clients;        /* by ws_conn.node */
    bool is_stopping;              /* no more of them */
    uint64_t api_error_ms;         /* when a mistake was logged last; 0: never */
    unsigned missing;              /* mistakes since then that were not logged */
};

/* In a slab, which lives as long as the worker's state: a pointer to a WebSocket that has ended is found. */
struct ws_conn {
    ws_request_t wr;
    struct ws_worker *worker;
    struct mk_ws *ws; /* NULL: it has ended */
    const struct ws_endpoint *endpoint;
    struct mk_list node; /* of connect(); else in no list */
    struct ws_conn *next_unused;
    int channel;          /* wr.channel, which the service might change; or the number of `name` */
    struct ws_name *name; /* NULL: its channel has none */
    bool is_opened;       /* OPEN was called */
    bool is_closed;       /* CLOSE and what comes before it are called, or were */
    bool is_silent;       /* the service is not notified: it could not be opened */
};

extern struct duda_package ws_package;

/* ── websocket.c ── */

/*
 * Log a mistake: `reason` is a clause. Of a worker they are limited to one line in 10 seconds. Return `result`.
 */
enum ws_result ws_refuse(struct ws_worker *w, const char *call, enum ws_result result, const char *reason);
/* Returns what this thread's worker has, or NULL: no callback of a worker runs. */
struct ws_worker *ws_find_worker(void);

/* Returns what this worker has of a group, or NULL without memory. */
struct mk_ws_worker *ws_get_worker(struct duda_package_worker *base, struct mk_ws_group *group);

/* ── conn.c ── */

/* Handlers of all WebSockets, whose context is the struct ws_conn. */
extern const struct mk_ws_handlers ws_handlers;
/* Returns a new one, which is counted in its channel, or NULL without memory. */
struct ws_conn *ws_conn_get(struct ws_worker *w, const struct ws_endpoint *endpoint, duda_request_t *dr, int channel,
                            void *data);
void ws_conn_put(struct ws_conn *conn);
/* Ends its place in its channel: it is in none. */
void ws_conn_leave_channel(struct ws_conn *conn);
/* Frees the memory of all. */
void ws_conn_release(struct ws_worker *w);

/* ── accept.c ── */

ws_request_t *ws_accept(duda_request_t *dr, const ws_endpoint_t *endpoint, int channel, void *data);
int ws_handshake(duda_request_t *dr, int channel);
int ws_handshake_with(duda_request_t *dr, ws_callback_t on_read, ws_callback_t on_write, ws_callback_t on_error,
                      ws_callback_t on_close, ws_callback_t on_timeout);

/* ── connect.c ── */

ws_request_t *ws_connect(const char *url, const ws_endpoint_t *endpoint, void *data);
/* Ends those of a worker. */
void ws_connect_stop(struct ws_worker *w);

/* ── calls.c ── */

int ws_write(ws_request_t *wr, unsigned int opcode, const unsigned char *data, uint64_t len);
int ws_broadcast(ws_request_t *wr, const unsigned char *data, uint64_t len, int opcode, int channel);
int ws_broadcast_all(const unsigned char *data, uint64_t len, int opcode, int channel);
enum ws_result ws_send(ws_request_t *wr, int opcode, const void *data, size_t len);
enum ws_result ws_publish(int channel, int opcode, const void *data, size_t len, const ws_request_t *except);
enum ws_result ws_close(ws_request_t *wr, unsigned code, const char *reason);
enum ws_result ws_pause(ws_request_t *wr);
enum ws_result ws_resume(ws_request_t *wr);
enum ws_result ws_set_channel(ws_request_t *wr, int channel);
size_t ws_count(int channel);
enum ws_result ws_join(ws_request_t *wr, const char *name);
enum ws_result ws_publish_to(const char *name, int opcode, const void *data, size_t len, const ws_request_t *except);
size_t ws_count_in(const char *name);
enum ws_result ws_close_channel(const char *name, unsigned code, const char *reason);
const char *ws_protocol(const ws_request_t *wr);
size_t ws_queued(const ws_request_t *wr);

#endif
