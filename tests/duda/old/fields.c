// SPDX-License-Identifier: Apache-2.0
/* Level 1: the parts of the path, which a request has whatever its route is. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Fields");

#define PART(name) (int)dr->name.len, dr->name.data ? dr->name.data : ""

void cb_fields(duda_request_t *dr)
{
    int i;

    response->http_status(dr, 200);
    response->printf(dr, "[%.*s] [%.*s] %d", PART(interface), PART(method), dr->n_params);
    for (i = 0; i < dr->n_params; i++)
        response->printf(dr, " %.*s", PART(params[i]));
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/", "cb_fields");
    return 0;
}
