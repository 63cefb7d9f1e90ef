// SPDX-License-Identifier: Apache-2.0
/* Level 1: cookies, and sessions that this version does not have. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Cookies");

void cb_set(duda_request_t *dr)
{
    response->http_status(dr, 200);
    cookie->set(dr, "k1", 2, "v1", 2, 0);
    cookie->set(dr, "k2", 2, "v2", 2, 1500000000);
    response->print(dr, "set", 3);
    response->end(dr, NULL);
}

void cb_get(duda_request_t *dr)
{
    int len = 0, result;
    char *value = NULL;

    result = cookie->get(dr, "k1", &value, &len);
    response->http_status(dr, 200);
    response->printf(dr, "%i %s %i %i", result, result == 0 ? value : "none", len, cookie->cmp(dr, "k1", "v1"));
    response->end(dr, NULL);
}

void cb_destroy(duda_request_t *dr)
{
    response->http_status(dr, 200);
    cookie->destroy(dr, "k1", 2);
    response->end(dr, NULL);
}

void cb_session(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i %i %s", session->isset(dr, "user"), session->create(dr, "user", "1", 0),
                     session->get(dr, "user") ? "some" : "none");
    response->end(dr, NULL);
}

int duda_main()
{
    session->init("old");
    map->static_add("/set/", "cb_set");
    map->static_add("/get/", "cb_get");
    map->static_add("/destroy/", "cb_destroy");
    map->static_add("/session/", "cb_session");
    return 0;
}
