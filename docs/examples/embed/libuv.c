// SPDX-License-Identifier: Apache-2.0
/*
 * A server in the loop of libuv: its handlers and the program's callbacks run in one thread, and need no locks. It ends
 * with a line on stdin.
 *
 *     cc libuv.c $(pkg-config --cflags --libs monkey libuv) -o libuv && ./libuv
 */
#include <monkey/embed.h>

#include <stdio.h>
#include <unistd.h>
#include <uv.h>

static int show_count(struct mk_request *req, void *ctx)
{
    int *count = ctx;
    return mk_response_printf(req, 200, "text/plain", "%d\n", ++*count);
}

static void run_server(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    if (mk_server_run_once(handle->data, 0) < 0)
        uv_stop(handle->loop);
}

static void quit(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    uv_stop(handle->loop);
}

int main(void)
{
    int count = 0;
    uv_poll_t turns, input;
    uv_loop_t *loop = uv_default_loop();
    struct mk_server *server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n");
    mk_server_handle(server, "GET", "/count", show_count, &count);
    mk_server_in_caller(server);
    if (mk_server_start(server) < 0) {
        fprintf(stderr, "libuv: %s\n", mk_server_error(server));
        return 1;
    }
    uv_poll_init(loop, &turns, mk_server_fd(server));
    turns.data = server;
    uv_poll_start(&turns, UV_READABLE, run_server);
    uv_poll_init(loop, &input, STDIN_FILENO);
    uv_poll_start(&input, UV_READABLE | UV_DISCONNECT, quit);
    printf("http://127.0.0.1:%d/count\n", mk_server_port(server));
    fflush(stdout);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&turns, NULL);
    uv_close((uv_handle_t *)&input, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    mk_server_stop(server);
    mk_server_free(server);
    return uv_loop_close(loop);
}
