// SPDX-License-Identifier: Apache-2.0
/* Level 0: callbacks of events have the request. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Events of level 0");

duda_global_t ends;
volatile uint64_t last;

int on_data(duda_request_t *dr)
{
    int *fds = global->get(ends);
    char c = '?';

    if (read(fds[0], &c, 1) != 1)
        c = '!';
    event->delete (fds[0]);
    close(fds[0]);
    close(fds[1]);
    response->cont(dr);
    response->printf(dr, "read %c", c);
    response->finalize(dr, NULL);
    return DUDA_EVENT_OWNED;
}

void *cb_ends(void *data)
{
    static int all[64][2], n;

    return all[__sync_fetch_and_add(&n, 1)];
}

void cb_wait(duda_request_t *dr)
{
    int *fds = global->get(ends);

    if (pipe(fds) != 0)
        return;
    response->http_status(dr, 200);
    event->add(fds[0], dr, DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED, on_data, NULL, NULL, NULL, NULL);
    if (write(fds[1], "0", 1) != 1)
        return;
    response->wait(dr);
}

/* The request ends first: its event goes with it. */
void cb_left(duda_request_t *dr)
{
    int *fds = global->get(ends);

    if (pipe(fds) != 0)
        return;
    response->http_status(dr, 200);
    event->add(fds[0], dr, DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED, on_data, NULL, NULL, NULL, NULL);
    if (write(fds[1], "0", 1) != 1)
        return;
    response->print(dr, "left", 4);
    response->end(dr, NULL);
}

void cb_look(duda_request_t *dr)
{
    int *fds = global->get(ends);

    response->http_status(dr, 200);
    response->printf(dr, "%s", event->lookup(fds[0]) ? "there" : "gone");
    close(fds[0]);
    close(fds[1]);
    response->end(dr, NULL);
}

void on_signal(int fd, uint64_t value)
{
    last = value;
}

void cb_signal(duda_request_t *dr)
{
    int fd = event->create_signal_fd();
    uint64_t value = 0;
    int n;

    event->signal(9);
    n = read(fd, &value, sizeof(value));
    response->http_status(dr, 200);
    response->printf(dr, "%i %lu", n, (unsigned long)value);
    close(fd);
    event->signal(10);
    response->end(dr, NULL);
}

void cb_last(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%lu", (unsigned long)last);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_event_set_signal_callback(on_signal);
    map->static_add("/signal/", "cb_signal");
    map->static_add("/last/", "cb_last");
    duda_global_init(&ends, cb_ends, NULL);
    map->static_add("/wait/", "cb_wait");
    map->static_add("/left/", "cb_left");
    map->static_add("/look/", "cb_look");
    return 0;
}
