// SPDX-License-Identifier: Apache-2.0
/* Level 1: reads on behind a part of the path, where the rest of the path is. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Behind");

/* Counts the segments up to the end of the path. */
static int count(const char *path)
{
    int n = 0;

    while (path[0] == '/')
        path++;
    while (*path != ' ' && *path != '?' && *path != '\0') {
        while (*path != '/' && *path != ' ' && *path != '?' && *path != '\0')
            path++;
        while (*path == '/')
            path++;
        n++;
    }
    return n;
}

void cb_api(duda_request_t *dr)
{
    response->http_status(dr, 200);
    if (*(dr->interface.data + dr->interface.len + 1) == ' ') {
        response->printf(dr, "all");
        response->end(dr, NULL);
    }
    response->printf(dr, "%.*s %d", (int)dr->method.len, dr->method.data, count(dr->method.data + dr->method.len));
    if (dr->n_params > 1)
        response->printf(dr, " %d", (int)(dr->params[1].data - dr->params[0].data));
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/api/", "cb_api");
    return 0;
}
