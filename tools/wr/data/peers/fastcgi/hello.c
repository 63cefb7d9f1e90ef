// SPDX-License-Identifier: Apache-2.0
/*
 * A FastCGI application that says hello, for F1c: one thread, epoll, kept connections. It answers each request when its
 * empty STDIN record has come, and looks at nothing else in it.
 *
 *     hello PORT SOCKET
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEAD = 8, BEGIN_REQUEST = 1, END_REQUEST = 3, STDIN = 5, STDOUT = 6, KEEP_CONN = 1, CONNS_MAX = 65536 };

/* A connection, by its descriptor: where in a record it is. */
struct conn {
    unsigned char head[HEAD], first[3]; /* of the record, and of its content */
    unsigned have;                      /* bytes of the head */
    unsigned at, left;                  /* in content and padding */
    bool listens, keeps;
};

static struct conn conns[CONNS_MAX];
static const char text[] = "Content-Type: text/plain\r\n\r\nHello, world\n";

static size_t add_record(unsigned char *to, const unsigned char *request, int type, const char *content, size_t len)
{
    const unsigned char head[HEAD] = {1, (unsigned char)type, request[2], request[3], 0, (unsigned char)len, 0, 0};
    memcpy(to, head, HEAD);
    memcpy(to + HEAD, content, len);
    return HEAD + len;
}

/* Sends the answer. Returns false if the connection ends: a client may have left at the end of a round. */
static bool answer(int fd, const struct conn *c)
{
    unsigned char out[128];
    size_t n = add_record(out, c->head, STDOUT, text, sizeof(text) - 1);
    n += add_record(out + n, c->head, STDOUT, "", 0);
    n += add_record(out + n, c->head, END_REQUEST, "\0\0\0\0\0\0\0\0", 8);
    return send(fd, out, n, MSG_NOSIGNAL) == (ssize_t)n && c->keeps;
}

/* Takes the end of a record. Returns false if the connection ends. */
static bool end_record(int fd, struct conn *c)
{
    unsigned len = (unsigned)c->head[4] << 8 | c->head[5];
    c->have = c->at = 0;
    if (c->head[1] == BEGIN_REQUEST && len >= 3)
        c->keeps = c->first[2] & KEEP_CONN;
    return c->head[1] != STDIN || len > 0 || answer(fd, c);
}

/* Takes one byte. Returns false if the connection ends. */
static bool take_byte(int fd, struct conn *c, unsigned char byte)
{
    if (c->have < HEAD) {
        c->head[c->have++] = byte;
        if (c->have < HEAD)
            return true;
        c->left = ((unsigned)c->head[4] << 8 | c->head[5]) + c->head[6];
    } else {
        if (c->at < sizeof(c->first))
            c->first[c->at] = byte;
        c->at++;
        c->left--;
    }
    return c->left || end_record(fd, c);
}

static void serve(int fd)
{
    unsigned char in[16384];
    struct conn *c = &conns[fd];
    ssize_t n = read(fd, in, sizeof(in));
    bool open = n > 0 || (n < 0 && errno == EAGAIN);
    for (ssize_t i = 0; i < n && open; i++)
        open = take_byte(fd, c, in[i]);
    if (!open)
        close(fd);
}

static void watch(int epoll, int fd, bool listens)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    conns[fd] = (struct conn){.listens = listens};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        exit(1);
}

static int listen_at(int family, const void *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, address, len) < 0 || listen(fd, 4096) < 0) {
        perror("hello");
        exit(1);
    }
    return fd;
}

static void accept_one(int epoll, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= CONNS_MAX)
        close(fd);
    else if (fd >= 0)
        watch(epoll, fd, false);
}

int main(int argc, char **argv)
{
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_un path = {.sun_family = AF_UNIX};
    struct epoll_event events[64];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (argc != 3 || epoll < 0 || strlen(argv[2]) >= sizeof(path.sun_path))
        return 2;
    port.sin_port = htons((uint16_t)strtoul(argv[1], NULL, 10));
    memcpy(path.sun_path, argv[2], strlen(argv[2]) + 1);
    unlink(argv[2]);
    umask(0); /* servers that root starts change to another user */
    watch(epoll, listen_at(AF_UNIX, &path, sizeof(path)), true);
    watch(epoll, listen_at(AF_INET, &port, sizeof(port)), true);
    for (;;) {
        int n = epoll_wait(epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            if (conns[events[i].data.fd].listens)
                accept_one(epoll, events[i].data.fd);
            else
                serve(events[i].data.fd);
        }
    }
}
