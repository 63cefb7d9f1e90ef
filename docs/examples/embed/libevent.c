// SPDX-License-Identifier: Apache-2.0
/*
 * A server in the loop of libevent: its handlers and the program's callbacks run in one thread, and need no locks. It
 * ends with a line on stdin.
 *
 *     cc libevent.c $(pkg-config --cflags --libs monkey libevent) -o libevent && ./libevent
 */
#include <monkey/embed.h>

#include <event2/event.h>
#include <stdio.h>
#include <unistd.h>

static int show_count(struct mk_request *req, void *ctx)
{
    int *count = ctx;
    return mk_response_printf(req, 200, "text/plain", "%d\n", ++*count);
}

static void run_server(evutil_socket_t fd, short events, void *server)
{
    (void)fd;
    (void)events;
    mk_server_run_once(server, 0);
}

static void quit(evutil_socket_t fd, short events, void *base)
{
    (void)fd;
    (void)events;
    event_base_loopbreak(base);
}

int main(void)
{
    int count = 0;
    struct event_base *base = event_base_new();
    struct mk_server *server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n");
    mk_server_handle(server, "GET", "/count", show_count, &count);
    mk_server_in_caller(server);
    if (mk_server_start(server) < 0) {
        fprintf(stderr, "libevent: %s\n", mk_server_error(server));
        return 1;
    }
    struct event *turns = event_new(base, mk_server_fd(server), EV_READ | EV_PERSIST, run_server, server);
    struct event *input = event_new(base, STDIN_FILENO, EV_READ, quit, base);
    event_add(turns, NULL);
    event_add(input, NULL);
    printf("http://127.0.0.1:%d/count\n", mk_server_port(server));
    fflush(stdout);
    event_base_dispatch(base);
    event_free(turns);
    event_free(input);
    mk_server_stop(server);
    mk_server_free(server);
    event_base_free(base);
    return 0;
}
