// SPDX-License-Identifier: Apache-2.0
/* Level 2: threads of the service, and a function before the loop of each worker. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Spawned");

volatile int ticks, loops;

void *tick(void *data)
{
    ticks = *(int *)data;
    return NULL;
}

void before_loop(void *data)
{
    (void)data;
    loops = 1;
}

void cb_show(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i %i", ticks, loops);
    response->end(dr, NULL);
}

int duda_main()
{
    static int begin = 7;

    worker->spawn(tick, &begin);
    worker->pre_loop(before_loop, NULL);
    router->map("/show/", cb_show);
    return 0;
}
