// SPDX-License-Identifier: Apache-2.0
/* Level 1: the query string, and the URI with the blank behind it. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Query");

void cb_all(duda_request_t *dr)
{
    int i;

    response->http_status(dr, 200);
    response->printf(dr, "%i:", qs->count(dr));
    for (i = 0; i < qs->count(dr); i++)
        response->printf(dr, " [%s]", qs->get_id(dr, i));
    response->printf(dr, " %s", qs->get_id(dr, i) || qs->get_id(dr, -1) ? "more" : "end");
    response->end(dr, NULL);
}

void cb_get(duda_request_t *dr)
{
    char *value = qs->get(dr, "key");

    response->http_status(dr, 200);
    response->printf(dr, "%s %i", value ? value : "(null)", qs->cmp(dr, "key", "yes"));
    response->end(dr, NULL);
}

void cb_uri(duda_request_t *dr)
{
    mk_pointer uri = dr->sr->uri;
    int i = 0;

    while (uri.data[i] != ' ')
        i++;
    response->http_status(dr, 200);
    response->printf(dr, "%i %lu %.*s %.*s", i == uri.len, uri.len, i, uri.data, (int)dr->sr->uri_processed.len,
                     dr->sr->uri_processed.data);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/all/", "cb_all");
    map->static_add("/get/", "cb_get");
    map->static_add("/uri/", "cb_uri");
    return 0;
}
