// SPDX-License-Identifier: Apache-2.0
/* Level 1: global values, a thread of the service, and signals to the workers. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Threads");

struct counter {
    int requests;
    uint64_t last;
};

duda_global_t counters, plain;
int door[2];

void *cb_counter(void *data)
{
    static struct counter all[64];
    static int n;
    struct counter *c = &all[__sync_fetch_and_add(&n, 1)];

    c->last = *(int *)data;
    return c;
}

void cb_signal(int fd, uint64_t value)
{
    struct counter *c = global->get(counters);
    c->last = value;
}

void *sender(void *arg)
{
    char c;
    struct counter *mine = global->get(counters);
    int fd = event->create_signal_fd();
    uint64_t value;

    while (read(door[0], &c, 1) == 1) {
        mine->requests++;
        event->signal(100 + mine->requests);
        if (read(fd, &value, sizeof(value)) != sizeof(value))
            break;
    }
    return NULL;
}

void cb_send(duda_request_t *dr)
{
    struct counter *c = global->get(counters);

    c->requests++;
    if (write(door[1], "x", 1) != 1)
        response->http_status(dr, 500);
    response->http_status(dr, 200);
    response->printf(dr, "%i", c->requests);
    response->end(dr, NULL);
}

void cb_last(duda_request_t *dr)
{
    struct counter *c = global->get(counters);

    global->set(plain, c);
    response->http_status(dr, 200);
    response->printf(dr, "%lu %i", (unsigned long)c->last, global->get(plain) == c);
    response->end(dr, NULL);
}

int duda_main()
{
    static int first = 7;

    if (pipe(door) != 0)
        return -1;
    duda_global_init(&counters, cb_counter, &first);
    global->init(&plain, NULL, NULL);
    duda_event_set_signal_callback(cb_signal);
    worker->spawn(sender, NULL);
    map->static_add("/send/", "cb_send");
    map->static_add("/last/", "cb_last");
    return 0;
}

void duda_exit()
{
    close(door[1]);
}
