// SPDX-License-Identifier: Apache-2.0
/*
 * echo: two WebSocket endpoints. What a client sends to /echo comes back; what it sends to /all goes to the clients of
 * /all in all threads. Link it with -lmonkey-kit -lz.
 */
#include <monkey/kit/websocket.h>
#include <monkey/plugin.h>

#include <errno.h>

extern const struct mk_plugin mk_plugin_echo;

enum { EVERYONE = 1 }; /* the channel of /all */

static void send_back(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ctx;
    mk_ws_send(ws, opcode, data, len); /* a client that does not read is closed when a megabyte waits */
}

static void send_to_all(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ctx;
    mk_ws_broadcast(mk_ws_get_group(mk_ws_get_worker(ws)), EVERYONE, opcode, data, len, NULL);
}

/* They live as long as the WebSockets that were opened with them. */
static const struct mk_ws_settings echo_settings = {.handlers = {.on_message = send_back}};
static const struct mk_ws_settings all_settings = {.handlers = {.on_message = send_to_all}};

/* A group of the generation, and in each worker its part. */
static int start(void **ret_state)
{
    *ret_state = mk_ws_group_new();
    return *ret_state ? 0 : -ENOMEM;
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    struct mk_ws_group *group = mk_generation_plugin_state(mk_worker_generation(worker), &mk_plugin_echo);
    *ret_state = mk_ws_worker_get(group, mk_worker_loop(worker), mk_worker_account(worker), NULL, NULL);
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    (void)worker;
    mk_ws_worker_put(state);
}

static void stop(void *state)
{
    mk_ws_group_free(state);
}

static int open_websocket(struct mk_request *req)
{
    struct mk_ws_worker *worker = mk_worker_state(mk_request_worker(req), &mk_plugin_echo);
    if (mk_str_eq(mk_request_path(req), MK_STR("/echo")))
        mk_ws_accept(req, worker, &echo_settings, MK_WS_ALL_CHANNELS, NULL);
    else if (mk_str_eq(mk_request_path(req), MK_STR("/all")))
        mk_ws_accept(req, worker, &all_settings, EVERYONE, NULL);
    else
        return MK_DECLINED;
    return 0; /* answered: with 101, or with why not */
}

MK_PLUGIN(echo) = {
    MK_PLUGIN_HEAD("echo", "1.0", "WebSockets: echo and broadcast"),
    .start = start,
    .stop = stop,
    .worker_start = start_worker,
    .worker_stop = stop_worker,
    .on_content = open_websocket,
};
