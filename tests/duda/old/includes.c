// SPDX-License-Identifier: Apache-2.0
/* Level 1: what services used without including more than this. */
#include "webservice.h"
#include "mk_list.h"
#include "mk_memory.h"

DUDA_REGISTER("Old services", "Includes");

/* An undeclared function or type is an error here, whatever the compiler's warnings are. */
void *functions[] = {printf,  malloc, strlen, strcasecmp, usleep,       time,   strftime,    pthread_create, stat,
                     mkdir,   socket, send,   setsockopt, epoll_create, writev, inet_ntoa,   getpid,         fork,
                     syscall, htons,  strdup, asprintf,   strcasestr,   memmem, localtime_r, snprintf,       strtol,
                     qsort,   getenv, rand,   sleep,      unlink,       access, pthread_self};

void cb_show(duda_request_t *dr)
{
    uint64_t wide = UINT64_MAX;
    struct stat st = {0};
    struct sockaddr_in address = {.sin_port = htons(80)};
    struct epoll_event happened = {.events = EPOLLIN};
    struct iovec piece = {"x", 1};
    struct timeval tv = {0};
    struct tm tm = {0};
    mk_ptr_t text = {"text", 4};
    mk_pointer same = text;
    pid_t thread = syscall(SYS_gettid);
    char path[MK_MAX_PATH];

    if (mk_unlikely(!mk_likely(path)))
        mk_mem_free(mk_mem_malloc(1));
    errno = 0;
    response->http_status(dr, 200);
    snprintf(path, sizeof(path), "%i %i %i %i", MK_TRUE, MK_FALSE, MK_ERROR, thread > 0);
    response->printf(dr, "%s %.*s %i", path, (int)same.len, same.data, errno);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add_ref("/", cb_show);
    return 0;
}
