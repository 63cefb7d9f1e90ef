// SPDX-License-Identifier: Apache-2.0
/*
 * hello PORT: GET /hello/ with ulfius. Its own start has a thread for each connection; here is one thread with epoll.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ulfius.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 8192, IDLE_SECONDS = 65 };

static int answer(const struct _u_request *request, struct _u_response *response, void *ctx)
{
    (void)request, (void)ctx;
    ulfius_set_string_body_response(response, 200, "Hello, world\n");
    return U_CALLBACK_COMPLETE;
}

static int start(struct _u_instance *instance, struct sockaddr_in *at)
{
    struct MHD_OptionItem options[] = {
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)mhd_request_completed, NULL},
        {MHD_OPTION_SOCK_ADDR, 0, at},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)ulfius_uri_logger, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    if (ulfius_add_endpoint_by_val(instance, "GET", "/hello", NULL, 0, answer, NULL) != U_OK)
        return -1;
    return ulfius_start_framework_with_mhd_options(instance, MHD_USE_EPOLL_INTERNAL_THREAD, options) == U_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct _u_instance instance;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return puts(ULFIUS_VERSION_STR) < 0;
    unsigned port = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    at.sin_port = htons((in_port_t)port);
    if (ulfius_init_instance(&instance, port, &at, NULL) != U_OK || start(&instance, &at) < 0)
        return 1;
    for (;;)
        pause();
}
