// SPDX-License-Identifier: Apache-2.0
/* Level 1: what it needs is not there, so that it does not start. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Refuses");

void cb_root(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_root("cb_root");
    if (open("/no/such/device", O_RDWR) < 0)
        return MK_ERROR;
    return 0;
}
