// SPDX-License-Identifier: Apache-2.0
/*
 * The protocol of sd_notify(3): one datagram to a Unix socket for each notification (sd_notify.h).
 */
#include "sd_notify.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char socket_variable[sizeof("NOTIFY_SOCKET=") + sizeof(((struct sockaddr_un *)0)->sun_path)];
enum { NAME_BYTES = sizeof("NOTIFY_SOCKET=") - 1 };

void sd_notify_init(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    if (path && (path[0] == '/' || path[0] == '@') && path[1] &&
        strlen(path) < sizeof(((struct sockaddr_un *)0)->sun_path))
        snprintf(socket_variable, sizeof(socket_variable), "NOTIFY_SOCKET=%s", path);
    unsetenv("NOTIFY_SOCKET");
}

char *sd_notify_variable(void)
{
    return socket_variable[0] ? socket_variable : NULL;
}

void sd_notify_send(const char *format, ...)
{
    char text[256];
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    va_list args;
    if (!socket_variable[0])
        return;
    va_start(args, format);
    int n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || n < 0)
        return;
    const char *path = socket_variable + NAME_BYTES;
    size_t len = strlen(path);
    memcpy(addr.sun_path, path, len);
    if (path[0] == '@')
        addr.sun_path[0] = '\0'; /* abstract socket: the name has no terminating NUL */
    else
        len++;
    sendto(fd, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL,
           (struct sockaddr *)&addr, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

void sd_notify_reloading(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    sd_notify_send("RELOADING=1\nMONOTONIC_USEC=%llu",
                   (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
}
