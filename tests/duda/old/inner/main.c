// SPDX-License-Identifier: Apache-2.0
/* Level 1: the service of which a sub-folder is a part. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Inner");

int get_size(double volume);

void cb_size(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d", get_size(27));
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/", "cb_size");
    return 0;
}
