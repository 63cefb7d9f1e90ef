// SPDX-License-Identifier: Apache-2.0
/* Level 1: a Makefile.in with conditionals. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Choice");

extern int speed;

void cb_choice(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d %d %d %d", speed, FIRST, SECOND, THIRD);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/", "cb_choice");
    return 0;
}
