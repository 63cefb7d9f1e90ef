// SPDX-License-Identifier: Apache-2.0
/*
 * WebSockets inside a program: what one client sends reaches all of them. A plugin of the program has a WebSocket
 * worker for each thread, and a handler accepts. It ends with a line on stdin.
 *
 *     cc chat.c $(pkg-config --cflags --libs monkey-kit monkey) -lz -o chat && ./chat
 */
#include <monkey/embed.h>
#include <monkey/kit/websocket.h>

#include <errno.h>
#include <stdio.h>

static struct mk_ws_group *group;

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    *ret_state = mk_ws_worker_get(group, mk_worker_loop(worker), mk_worker_account(worker), NULL, NULL);
    return *ret_state ? 0 : -ENOMEM;
}

static void stop_worker(struct mk_worker *worker, void *state)
{
    (void)worker;
    mk_ws_worker_put(state);
}

static const struct mk_plugin chat = {
    MK_PLUGIN_HEAD("chat", "1.0", "WebSockets of the program"),
    .worker_start = start_worker,
    .worker_stop = stop_worker,
};

static void send_to_all(struct mk_ws *ws, enum mk_ws_opcode opcode, char *data, size_t len, void *ctx)
{
    (void)ws;
    (void)ctx;
    mk_ws_broadcast(group, MK_WS_ALL_CHANNELS, opcode, data, len, NULL);
}

static const struct mk_ws_settings settings = {.handlers = {.on_message = send_to_all}};

static int join(struct mk_request *req, void *ctx)
{
    (void)ctx;
    mk_ws_accept(req, mk_worker_state(mk_request_worker(req), &chat), &settings, 0, NULL);
    return 0; /* answered: with 101, or with why not */
}

int main(void)
{
    group = mk_ws_group_new();
    struct mk_server *server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 2\n");
    mk_server_add_plugin(server, &chat);
    mk_server_handle(server, "GET", "/chat", join, NULL);
    if (!group || mk_server_start(server) < 0) {
        fprintf(stderr, "chat: %s\n", mk_server_error(server));
        return 1;
    }
    printf("ws://127.0.0.1:%d/chat\n", mk_server_port(server));
    fflush(stdout);
    getchar();
    mk_server_stop(server);
    mk_server_free(server);
    mk_ws_group_free(group);
    return 0;
}
