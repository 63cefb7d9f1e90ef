/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1: the C of 1989, with what gcc let pass. */
#include "webservice.h"
#include <math.h>
#include "packages/json/json.h"
#include "packages/kv/kv.h"
#include "packages/redis/redis.h"
#include "packages/sqlite/sqlite.h"
#include "packages/websocket/websocket.h"

DUDA_REGISTER("Old services", TITLE);

count;

root_of(n) double n;
{
    return sqrt(n);
}

void cb_root(dr) duda_request_t *dr;
{
    response->http_status(dr, 200);
    response->printf(dr, "%s %d %d %d", TITLE, root_of(144.0), ++count, later(3));
    response->end(dr, NULL);
}

later(n)
{
    return n * 2;
}

int duda_main()
{
    map->static_root("cb_root");
    return 0;
}
