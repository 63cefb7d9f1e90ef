// SPDX-License-Identifier: Apache-2.0
/* Level 2: a service that names itself, with routes by patterns. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Named");

void cb_item(duda_request_t *dr)
{
    long id = -1;
    int result = param->get_number(dr, "id", &id);

    response->http_status(dr, 200);
    response->printf(dr, "%s %i %li", param->get(dr, "kind"), result, id);
    response->end(dr, NULL);
}

void cb_root(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "root of %.*s", (int)dr->appname.len, dr->appname.data);
    response->end(dr, NULL);
}

int duda_main()
{
    conf->service_name("shop");
    router->map("/:kind/id/:id/", cb_item);
    router->root(cb_root);
    return 0;
}
