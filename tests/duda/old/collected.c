// SPDX-License-Identifier: Apache-2.0
/* Level 1: pointers that gc->add() gets twice, or that are no memory of the request. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Garbage");

void cb_twice(duda_request_t *dr)
{
    char *text = monkey->str_dup("text");
    int first, second;

    first = gc->add(dr, text);
    second = gc->add(dr, text);
    response->http_status(dr, 200);
    response->printf(dr, "%s %i %i", text, first, second);
    response->end(dr, NULL);
}

void cb_object(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i %i", gc->add(dr, (void *)data), gc->add(dr, (void *)response));
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/twice/", "cb_twice");
    map->static_add("/object/", "cb_object");
    return 0;
}
