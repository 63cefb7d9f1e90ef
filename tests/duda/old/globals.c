// SPDX-License-Identifier: Apache-2.0
/* Level 0: values of each worker, one of which a callback makes. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Globals");

duda_global_t empty, made;

void *make_value(void *data)
{
    static char value[16];

    snprintf(value, sizeof(value), "made of %s", (char *)data);
    return value;
}

void cb_values(duda_request_t *dr)
{
    long n = (long)global->get(empty);

    global->set(empty, (void *)(n + 1));
    response->http_status(dr, 200);
    response->printf(dr, "%ld %s", n, (char *)global->get(made));
    response->end(dr, NULL);
}

int duda_main()
{
    duda_global_init(&empty, NULL, NULL);
    duda_global_init(&made, make_value, "data");
    map->static_add("/values/", "cb_values");
    return 0;
}
