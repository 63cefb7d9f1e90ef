// SPDX-License-Identifier: Apache-2.0
/* Level 1: interfaces, methods and parameters by number. */
#include "webservice.h"

DUDA_REGISTER("Old services", "REST");

void cb_sum(duda_request_t *dr)
{
    long a = -1, b = -1;

    if (param->get_number(dr, 0, &a) == -1 || param->get_number(dr, 1, &b) == -1) {
        response->http_status(dr, 400);
        response->printf(dr, "no numbers, %ld %ld", a, b);
        response->end(dr, NULL);
    }
    response->http_status(dr, 200);
    response->printf(dr, "%ld", a + b);
    response->end(dr, NULL);
}

void cb_show(duda_request_t *dr)
{
    char *first = param->get(dr, 0);
    short int i = 1;
    char *second = param->get(dr, i);

    gc->add(dr, first);
    gc->add(dr, second);
    response->http_status(dr, 200);
    response->printf(dr, "%i %s/%s %i %s", param->count(dr), first, second, param->len(dr, 0),
                     param->get(dr, 2) == NULL ? "none" : "more");
    response->printf(dr, " | %.*s %.*s %.*s %i %.*s", (int)dr->appname.len, dr->appname.data, (int)dr->interface.len,
                     dr->interface.data, (int)dr->method.len, dr->method.data, dr->n_params, (int)dr->params[1].len,
                     dr->params[1].data);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_interface_t *numbers, *texts;
    duda_method_t *method;
    duda_param_t *p;

    numbers = map->interface_new("numbers");
    method = map->method_new("sum", "cb_sum", 2);
    p = map->param_new("a", 0);
    map->method_add_param(p, method);
    p = map->param_new("b", 5);
    map->method_add_param(p, method);
    map->interface_add_method(method, numbers);
    map->add_interface(numbers);

    texts = map->interface_new("texts");
    method = map->method_builtin_new("show", cb_show, 2);
    map->interface_add_method(method, texts);
    duda_service_add_interface(texts);
    return 0;
}
