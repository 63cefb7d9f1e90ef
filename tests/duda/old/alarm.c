// SPDX-License-Identifier: Apache-2.0
/* Level 1: a request that waits for a timer of the kernel. */
#include "webservice.h"
#include <sys/timerfd.h>

DUDA_REGISTER("Old services", "Alarm");

int cb_read(int fd, void *data)
{
    duda_request_t *dr = data;
    uint64_t times = 0;

    read(fd, &times, sizeof(times));
    event->delete (fd);
    close(fd);
    if (!request->validate_request(dr))
        return DUDA_EVENT_OWNED;
    response->cont(dr);
    response->http_status(dr, 200);
    response->printf(dr, "rang %i", (int)times);
    response->finalize(dr, NULL);
    return DUDA_EVENT_OWNED;
}

void cb_alarm(duda_request_t *dr)
{
    struct itimerspec soon = {{0, 0}, {0, 20 * 1000 * 1000}};
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);

    timerfd_settime(fd, 0, &soon, NULL);
    event->add(fd, DUDA_EVENT_READ, DUDA_EVENT_LEVEL_TRIGGERED, cb_read, NULL, NULL, NULL, NULL, dr);
    response->wait(dr);
}

int duda_main()
{
    map->static_add("/", "cb_alarm");
    return 0;
}
