// SPDX-License-Identifier: Apache-2.0
/* Hello by libmicrohttpd, as its tutorial does it: one thread with epoll, keep-alive. */
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

static enum MHD_Result answer(void *cls, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *data, size_t *size, void **state)
{
    char text[256];
    (void)cls;
    (void)version;
    (void)data;
    if (!*state) {
        *state = &size;
        return MHD_YES;
    }
    unsigned status = 404;
    text[0] = '\0';
    if (strcmp(method, "GET") == 0 && strncmp(url, "/hello/", 7) == 0 && !strchr(url + 7, '/')) {
        snprintf(text, sizeof(text), "Hello, %s!\n", url + 7);
        status = 200;
    }
    struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
    MHD_add_response_header(response, "Content-Type", "text/plain");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

int main(void)
{
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, NULL, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) {
        fprintf(stderr, "the server cannot start\n");
        return 1;
    }
    printf("http://127.0.0.1:%d/hello/you\n", info->port);
    fflush(stdout);
    getchar();
    MHD_stop_daemon(daemon);
    return 0;
}
