// SPDX-License-Identifier: Apache-2.0
/* Between the levels 1 and 2: map and router in one service, parameters by number and by name. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Both");

void cb_number(duda_request_t *dr)
{
    short int which = 0;
    long n = 7;
    char *text = param->get(dr, which);
    int result = param->get_number(dr, 0, &n);

    response->http_status(dr, 200);
    response->printf(dr, "number %s %i %i %ld", text, param->len(dr, 0), result, n);
    mem->free(text);
    response->end(dr, NULL);
}

void cb_name(duda_request_t *dr)
{
    const char *which = "id";
    long n = 7;
    int result = param->get_number(dr, "id", &n);

    response->http_status(dr, 200);
    response->printf(dr, "name %s %i %ld %s", param->get(dr, which), result, n,
                     param->get(dr, "none") ? "some" : "none");
    response->end(dr, NULL);
}

void cb_thread(void *data)
{
}

int duda_main()
{
    duda_interface_t *iface = map->interface_new("by");
    duda_method_t *method = map->method_new("number", "cb_number", 1);

    map->interface_add_method(method, iface);
    map->add_interface(iface);
    router->map("/name/:id", cb_name);
    if (dthread->create(cb_thread, NULL) != -1)
        return -1;
    return 0;
}
