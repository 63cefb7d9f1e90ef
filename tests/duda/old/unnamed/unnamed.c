// SPDX-License-Identifier: Apache-2.0
/* Level 1: named like its folder, of all files in it, and of a compiler of another machine. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Unnamed");

void cb_name(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%.*s", (int)dr->appname.len, dr->appname.data);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_root("cb_name");
    return 0;
}
