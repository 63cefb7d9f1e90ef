// SPDX-License-Identifier: Apache-2.0
/* What the programs of this folder share: a check that ends the program, and connections to a port. */
#ifndef TESTS_EMBED_CLIENT_H
#define TESTS_EMBED_CLIENT_H

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK(fact) \
    do { \
        if (!(fact)) { \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #fact, strerror(errno)); \
            abort(); \
        } \
    } while (0)

static inline int make_socket(void)
{
    struct timeval patience = {.tv_sec = 60};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return fd;
}

/* Returns 0, or -errno. */
static inline int connect_socket(int fd, int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ? -errno : 0;
}

static inline int connect_to(int port)
{
    int fd = make_socket();
    CHECK(port > 0 && connect_socket(fd, port) == 0);
    return fd;
}

static inline unsigned count_entries(const char *path)
{
    unsigned n = 0;
    DIR *dir = opendir(path);
    CHECK(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

#endif
