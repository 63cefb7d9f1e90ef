// SPDX-License-Identifier: Apache-2.0
/* Level 0: static maps by the names of functions. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Maps");

void cb_root(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain");
    response->print(dr, "root", 4);
    response->end(dr, NULL);
}

void cb_apples(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "apples of %s", "a tree");
    response->end(dr, NULL);
}

void cb_late(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "not reached");
    response->end(dr, NULL);
}

void cb_teapot(duda_request_t *dr)
{
    response->http_status(dr, 418);
    response->end(dr, NULL);
}

void cb_forgotten(duda_request_t *dr)
{
    response->print(dr, "no status", 9);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_root("cb_root");
    map->static_add("/apples", "cb_apples");
    map->static_add("/apples/late", "cb_late");
    map->static_add("/teapot/", "cb_teapot");
    map->static_add("/forgotten/", "cb_forgotten");
    return 0;
}
