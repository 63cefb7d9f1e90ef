// SPDX-License-Identifier: Apache-2.0
/* Hello by civetweb, as its examples do it: one worker thread, keep-alive. */
#include <civetweb.h>
#include <stdio.h>
#include <string.h>

static int answer(struct mg_connection *connection, void *ctx)
{
    char text[256];
    const struct mg_request_info *request = mg_get_request_info(connection);
    (void)ctx;
    if (strcmp(request->request_method, "GET") != 0)
        return 0;
    int len = snprintf(text, sizeof(text), "Hello, %s!\n", request->local_uri + strlen("/hello/"));
    mg_send_http_ok(connection, "text/plain", len);
    mg_write(connection, text, (size_t)len);
    return 200;
}

int main(void)
{
    const char *options[] = {"listening_ports", "127.0.0.1:0", "num_threads", "1", "enable_keep_alive", "yes",
                             "tcp_nodelay",     "1",           NULL};
    struct mg_callbacks callbacks = {0};
    struct mg_server_port port;
    mg_init_library(0);
    struct mg_context *server = mg_start(&callbacks, NULL, options);
    if (!server || mg_get_server_ports(server, 1, &port) != 1) {
        fprintf(stderr, "the server cannot start\n");
        return 1;
    }
    mg_set_request_handler(server, "/hello/*$", answer, NULL);
    printf("http://127.0.0.1:%d/hello/you\n", port.port);
    fflush(stdout);
    getchar();
    mg_stop(server);
    mg_exit_library();
    return 0;
}
