// SPDX-License-Identifier: Apache-2.0
/* Spring of 2012: the service begins in duda_init(). */
#include "webservice.h"

DUDA_REGISTER("Old services", "Spring");

void cb_cpu(duda_request_t *dr)
{
    msg->info("callback %s", "cpu");
    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain", 24);
    response->body_print(dr, "cpu\n", 4);
    response->end(dr, NULL);
}

int duda_init(struct duda_api_objects *api)
{
    duda_interface_t *system;
    duda_method_t *method;
    duda_param_t *param;

    duda_service_init();

    system = map->interface_new("system");
    method = map->method_new("cpu", "cb_cpu", 1);
    param = map->param_new("id", 5);
    map->method_add_param(param, method);
    map->interface_add_method(method, system);
    duda_service_add_interface(system);

    duda_service_ready();
}
