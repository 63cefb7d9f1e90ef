// SPDX-License-Identifier: Apache-2.0
/*
 * events: server-sent events. GET /events/clock sends the seconds since the client has come, one event each second;
 * ?ms=10 makes them faster, and ?n=3 ends after three. The page html/index.html shows them.
 */
#include <duda/duda.h>

#include <stdio.h>
#include <stdlib.h>

DUDA_REGISTER("Duda I/O examples", "server-sent events");

/* One client. */
struct clock {
    duda_request_t *dr;
    duda_timer_t timer;
    long n, last;
};

static void tick(void *data)
{
    struct clock *clock = data;
    char id[24];
    snprintf(id, sizeof(id), "%ld", ++clock->n);
    response->sse_send(clock->dr, "tick", id, "%ld", clock->n);
    if (clock->n == clock->last)
        response->end(clock->dr, NULL);
}

/* The request has ended: the timer must not use it any more. */
static void stop_clock(void *data)
{
    struct clock *clock = data;
    event->cancel(clock->timer);
    free(clock);
}

static void start_clock(duda_request_t *dr)
{
    long ms = 1000;
    struct clock *clock = calloc(1, sizeof(*clock));
    if (!clock || gc->add_destroy(dr, clock, stop_clock) < 0) {
        free(clock);
        response->error(dr, 503);
        return;
    }
    qs->get_number(dr, "ms", &ms);
    qs->get_number(dr, "n", &clock->last);
    clock->dr = dr;
    clock->timer = event->interval(ms < 1 ? 1 : (uint32_t)ms, tick, clock);
    response->sse_begin(dr, 15);
}

int duda_main(void)
{
    return router->get("/clock", start_clock) ? 0 : -1;
}
