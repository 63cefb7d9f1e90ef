// SPDX-License-Identifier: Apache-2.0
/*
 * hello PORT [CERTIFICATE KEY]: GET /hello/ with libmicrohttpd, one thread with epoll, one answer for all requests.
 */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 8192, IDLE_SECONDS = 65, PEM_BYTES_MAX = 16384 };

static struct MHD_Response *hello, *missing;

static enum MHD_Result answer(void *ctx, struct MHD_Connection *conn, const char *url, const char *method,
                              const char *version, const char *body, size_t *body_len, void **state)
{
    static int seen;
    (void)ctx, (void)version, (void)body, (void)body_len;
    if (!*state) { /* the head; an answer to it would close the connection */
        *state = &seen;
        return MHD_YES;
    }
    if (strcmp(method, "GET") == 0 && strcmp(url, "/hello/") == 0)
        return MHD_queue_response(conn, MHD_HTTP_OK, hello);
    return MHD_queue_response(conn, MHD_HTTP_NOT_FOUND, missing);
}

static struct MHD_Response *make_response(const char *text)
{
    return MHD_create_response_from_buffer(strlen(text), (void *)(size_t)text, MHD_RESPMEM_PERSISTENT);
}

static void read_pem(const char *path, char *ret)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        exit(1);
    }
    ret[fread(ret, 1, PEM_BYTES_MAX - 1, file)] = 0;
    fclose(file);
}

static struct MHD_Daemon *start(in_port_t port, const char *cert, const char *key)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(size_t)cert},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(size_t)key},
        {MHD_OPTION_END, 0, NULL},
    };
    bool secure = *cert != 0;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG | (secure ? MHD_USE_TLS : 0);
    return MHD_start_daemon(flags, port, NULL, NULL, answer, NULL, MHD_OPTION_SOCK_ADDR, &at,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)IDLE_SECONDS, MHD_OPTION_ARRAY, secure ? tls : &tls[2], MHD_OPTION_END);
}

int main(int argc, char **argv)
{
    char cert[PEM_BYTES_MAX] = "", key[PEM_BYTES_MAX] = "";
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts(MHD_get_version()) < 0;
    if (argc == 4 && argv[2][0]) {
        read_pem(argv[2], cert);
        read_pem(argv[3], key);
    }
    hello = make_response("Hello, world\n");
    missing = make_response("");
    if (argc < 2 || !start((in_port_t)strtoul(argv[1], NULL, 10), cert, key))
        return 1;
    for (;;)
        pause();
}
