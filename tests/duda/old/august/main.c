// SPDX-License-Identifier: Apache-2.0
/* Level 0: keys of global->init() are no pointers, and the object of parameters has its first name. */
#include "webservice.h"

DUDA_REGISTER("Old services", "August");

duda_global_t number;
duda_global_t nothing;

void *make_number()
{
    static int made;

    made = 40;
    return &made;
}

void cb_add(duda_request_t *dr)
{
    short int first = 0;
    char *text = params->get(dr, first);
    int sum = *(int *)global->get(number) + (int)strtol(text, NULL, 10);

    response->http_status(dr, 200);
    response->body_printf(dr, "%d %d", sum, global->get(nothing) == NULL);
    free(text);
    response->end(dr, NULL);
}

int duda_main(struct duda_api_objects *api)
{
    duda_interface_t *numbers;
    duda_method_t *method;
    duda_param_t *params;

    duda_service_init();
    global->init(nothing, NULL);
    global->init(number, make_number);

    numbers = map->interface_new("numbers");
    method = map->method_new("add", "cb_add", 1);
    params = map->param_new("number", 3);
    map->method_add_param(params, method);
    map->interface_add_method(method, numbers);
    duda_service_add_interface(numbers);

    duda_service_ready();
}
