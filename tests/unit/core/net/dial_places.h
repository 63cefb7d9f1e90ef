// SPDX-License-Identifier: Apache-2.0
/*
 * Where tests dial to. An address that does not answer is a listener whose queue is full: the kernel drops what comes
 * then. All addresses of a name have one port, so that the listeners of a test are at 127.0.0.1, 127.0.0.2 ...
 */
#ifndef MK_UNIT_NET_DIAL_PLACES_H
#define MK_UNIT_NET_DIAL_PLACES_H

#include "folder.h"

#include <errno.h>

#include "net/listen.h"

struct place {
    int fd;
    unsigned port;
    int fill[4], n;
};

static struct place places[10];
static unsigned n_places;

static inline struct place *listen_at(const char *text, int backlog)
{
    const struct mk__listen_options options = {.backlog = backlog, .fast_open_queue = 5};
    struct place *p = &places[n_places++];
    struct mk__addr addr;
    const char *error;
    assert_int_equal(mk__addr_parse(mk_str_c(text), &addr, &error), 0);
    p->n = 0;
    p->fd = mk__listen_bind(&addr, &options);
    assert_true(p->fd >= 0);
    p->port = mk__addr_port(&addr);
    assert_int_equal(mk__listen_start(p->fd, &addr, &options), 0);
    return p;
}

static inline void connect_blindly(struct place *p)
{
    struct mk__addr addr = {.len = sizeof(addr.un)};
    int fd;
    assert_int_equal(getsockname(p->fd, &addr.sa, &addr.len), 0);
    fd = socket(addr.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connect(fd, &addr.sa, addr.len) < 0)
        assert_true(errno == EINPROGRESS || errno == EAGAIN);
    p->fill[p->n++] = fd;
}

/* Further connections get no answer. */
static inline struct place *hole_at(const char *text)
{
    struct place *p = listen_at(text, 0);
    for (int i = 0; i < 3; i++)
        connect_blindly(p);
    return p;
}

static inline const char *at(const char *host, unsigned port)
{
    static char text[300];
    snprintf(text, sizeof(text), "%s:%u", host, port);
    return text;
}

/* A port without a listener, on any address. */
static inline unsigned free_port(void)
{
    struct place *p = listen_at("*:0", 1);
    close(p->fd);
    n_places--;
    return p->port;
}

/* A Unix socket in the test's folder; the text stays until the next call. */
static inline const char *at_unix(const char *name)
{
    static char text[600];
    snprintf(text, sizeof(text), "unix:%s", mk_test_path(name));
    return text;
}

static inline void close_places(void)
{
    for (unsigned i = 0; i < n_places; i++) {
        close(places[i].fd);
        while (places[i].n)
            close(places[i].fill[--places[i].n]);
    }
}

#endif
