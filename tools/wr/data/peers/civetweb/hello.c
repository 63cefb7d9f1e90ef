// SPDX-License-Identifier: Apache-2.0
/*
 * hello PORT: GET /hello/ with civetweb, which has a thread for each connection. The answer is one write: the
 * library's own functions for heads write each field apart.
 */
#include <civetweb.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BODY "Hello, world\n"

static int answer(struct mg_connection *conn, void *ctx)
{
    static _Thread_local char text[256];
    static _Thread_local time_t made;
    time_t now = time(NULL);
    (void)ctx;
    if (now != made)
        strftime(text, sizeof(text),
                 "HTTP/1.1 200 OK\r\nDate: %a, %d %b %Y %H:%M:%S GMT\r\nContent-Length: 13\r\n\r\n" BODY, gmtime(&now));
    made = now;
    mg_write(conn, text, strlen(text));
    return 200;
}

int main(int argc, char **argv)
{
    char listen[64];
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts(mg_version()) < 0;
    if (argc < 2)
        return 2;
    snprintf(listen, sizeof(listen), "127.0.0.1:%s", argv[1]);
    /* clang-format off */
    const char *options[] = {
        "listening_ports", listen,
        "num_threads", "80",
        "enable_keep_alive", "yes",
        "keep_alive_timeout_ms", "65000",
        "request_timeout_ms", "65000",
        "tcp_nodelay", "1",
        NULL,
    };
    /* clang-format on */
    mg_init_library(0);
    struct mg_context *ctx = mg_start(NULL, NULL, options);
    if (!ctx)
        return 1;
    mg_set_request_handler(ctx, "/hello/$", answer, NULL);
    for (;;)
        pause();
}
