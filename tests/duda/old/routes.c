// SPDX-License-Identifier: Apache-2.0
/* Level 2: the router, and parameters by name. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Routes");

void cb_root(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->print(dr, "root\n", 5);
    response->end(dr, NULL);
}

void cb_user(duda_request_t *dr)
{
    long age = 0;
    char *name = param->get(dr, "name");

    response->http_status(dr, 200);
    if (param->get_number(dr, "age", &age) == 0)
        response->printf(dr, "%s is %ld", name, age);
    else
        response->printf(dr, "%s is ageless", name);
    if (!param->get(dr, "other"))
        response->print(dr, ".", 1);
    response->end(dr, NULL);
}

void cb_static(duda_request_t *dr)
{
    mk_ptr_t uri = dr->sr->uri;

    response->http_status(dr, 200);
    response->printf(dr, "static %.*s", (int)uri.len, uri.data);
    response->end(dr, NULL);
}

int duda_main()
{
    router->root(cb_root);
    router->map("/user/:name/:age", cb_user);
    router->map("/static/", cb_static);
    console->dashboard("/dashboard");
    return 0;
}
