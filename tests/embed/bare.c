// SPDX-License-Identifier: Apache-2.0
/*
 * Hello from an embedded server, for measurements: bare threads|caller|empty. It prints its URL, and ends with a line
 * on stdin; `empty` has no server.
 */
#include <monkey/embed.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int say_hello(struct mk_request *req, void *ctx)
{
    (void)ctx;
    return mk_response_printf(req, 200, "text/plain", "Hello, world\n");
}

static bool has_input(void)
{
    struct pollfd one = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&one, 1, 0) != 0;
}

int main(int argc, char **argv)
{
    bool empty = argc > 1 && strcmp(argv[1], "empty") == 0, in_caller = argc > 1 && strcmp(argv[1], "caller") == 0;
    struct mk_server *server = empty ? NULL : mk_server_new();
    if (!empty) {
        mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    KeepAliveTimeout 60s\n"
                               "    MaxKeepAliveRequest 100000\n");
        mk_server_handle(server, "GET", "/hello/", say_hello, NULL);
        if (in_caller)
            mk_server_in_caller(server);
        if (mk_server_start(server) < 0) {
            fprintf(stderr, "bare: %s\n", mk_server_error(server));
            return 1;
        }
    }
    printf("http://127.0.0.1:%d/hello/\n", empty ? 0 : mk_server_port(server));
    fflush(stdout);
    while (in_caller && !has_input())
        mk_server_run_once(server, 100);
    getchar();
    mk_server_stop(server);
    mk_server_free(server);
    return 0;
}
