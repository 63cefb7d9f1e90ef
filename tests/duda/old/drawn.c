// SPDX-License-Identifier: Apache-2.0
/* Level 1: JSON that a request is parsed from, and answered with. */
#include "webservice.h"
#include "packages/json/json.h"

DUDA_REGISTER("Old services", "JSON");

void cb_sum(duda_request_t *dr)
{
    json_t *asked = json->parse_data(dr), *items, *reply;
    double sum = 0;
    int i;

    response->http_content_type(dr, "json");
    if (!asked || !(items = json->get_object_item(asked, "Items"))) {
        json->delete (asked);
        response->http_status(dr, 400);
        response->print(dr, "{}", 2);
        response->end(dr, NULL);
    }
    for (i = 0; i < json->get_array_size(items); i++)
        sum += json->get_array_item(items, i)->valuedouble;
    reply = json->create_object();
    json->add_to_object(reply, "sum", json->create_number(sum));
    json->delete (asked);
    response->http_status(dr, 200);
    response->printf(dr, "%s", json->print_unformatted_gc(dr, reply));
    json->delete (reply);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_load_package(json, "json");
    map->static_add("/sum", "cb_sum");
    return 0;
}
