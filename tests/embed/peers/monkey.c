// SPDX-License-Identifier: Apache-2.0
/* The same program as the others of this folder, with libmonkey. */
#include <monkey/embed.h>

#include <stdio.h>

static int say_hello(struct mk_request *req, void *ctx)
{
    struct mk_str name = mk_request_param(req, "name");
    (void)ctx;
    return mk_response_printf(req, 200, "text/plain", "Hello, %.*s!\n", MK_STR_ARG(name));
}

int main(void)
{
    struct mk_server *server = mk_server_new();
    mk_server_text(server, "[SERVER]\n    Listen 127.0.0.1:0\n    Workers 1\n    MaxKeepAliveRequest 1000000\n");
    mk_server_handle(server, "GET", "/hello/:name", say_hello, NULL);
    if (mk_server_start(server) < 0) {
        fprintf(stderr, "%s\n", mk_server_error(server));
        return 1;
    }
    printf("http://127.0.0.1:%d/hello/you\n", mk_server_port(server));
    fflush(stdout);
    getchar();
    mk_server_stop(server);
    mk_server_free(server);
    return 0;
}
