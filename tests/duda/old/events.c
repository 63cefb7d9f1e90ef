// SPDX-License-Identifier: Apache-2.0
/* Level 1: descriptors in the worker's loop, and responses that wait for them. */
#include "webservice.h"
#include <sys/timerfd.h>

DUDA_REGISTER("Old services", "Events");

struct wait {
    duda_request_t *dr;
    int ends[2];
    int rounds;
};

int on_tick(int fd, void *data)
{
    struct wait *w = data;
    uint64_t n;

    if (read(fd, &n, sizeof(n)) != sizeof(n))
        return DUDA_EVENT_OWNED;
    if (!request->validate_request(w->dr)) {
        event->delete (fd);
        close(fd);
        return DUDA_EVENT_OWNED;
    }
    response->printf(w->dr, "tick %i\n", w->rounds);
    if (++w->rounds < 3)
        return DUDA_EVENT_OWNED;
    event->delete (fd);
    close(fd);
    response->cont(w->dr);
    response->finalize(w->dr, NULL);
    return DUDA_EVENT_OWNED;
}

void cb_ticks(duda_request_t *dr)
{
    struct itimerspec often = {{0, 1000000}, {0, 1000000}};
    struct wait *w = monkey->mem_alloc_z(sizeof(struct wait));
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

    gc->add(dr, w);
    w->dr = dr;
    timerfd_settime(fd, 0, &often, NULL);
    response->http_status(dr, 200);
    event->add(fd, DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED, on_tick, NULL, NULL, NULL, NULL, w);
    response->wait(dr);
}

int on_data(int fd, void *data)
{
    struct wait *w = data;
    char c;

    if (read(fd, &c, 1) == 1)
        response->printf(w->dr, "[%c]", c);
    return DUDA_EVENT_CLOSE;
}

int on_close(int fd, void *data)
{
    struct wait *w = data;

    response->cont(w->dr);
    response->print(w->dr, " closed", 7);
    response->finalize(w->dr, NULL);
    return DUDA_EVENT_CLOSE;
}

void cb_pipe(duda_request_t *dr)
{
    struct wait *w = calloc(1, sizeof(struct wait));
    struct duda_event_handler *h;

    gc->add(dr, w);
    w->dr = dr;
    if (pipe(w->ends) != 0)
        return;
    response->http_status(dr, 200);
    event->add(w->ends[0], MK_EPOLL_SLEEP, MK_EPOLL_LEVEL_TRIGGERED, on_data, NULL, NULL, on_close, NULL, w);
    h = event->lookup(w->ends[0]);
    response->printf(dr, "%i ", h && h->fd == w->ends[0] && !event->lookup(9999));
    event->mode(w->ends[0], DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED);
    if (write(w->ends[1], "p", 1) != 1)
        return;
    close(w->ends[1]);
    response->wait(dr);
}

int duda_main()
{
    map->static_add("/ticks/", "cb_ticks");
    map->static_add("/pipe/", "cb_pipe");
    return 0;
}
