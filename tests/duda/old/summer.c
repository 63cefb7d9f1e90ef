// SPDX-License-Identifier: Apache-2.0
/* Summer of 2012: duda_main() with an argument, headers with a length, and the former names of print(). */
#include "webservice.h"
#include "packages/json/json.h"

#define HEADER "Content-Type: text/plain; and more"

DUDA_REGISTER("Old services", "Summer");

duda_global_t counter;
duda_global_t nothing;

void cb_end(duda_request_t *dr)
{
    (*(int *)global->get(counter))++;
}

void cb_text(duda_request_t *dr)
{
    char *word = "words";

    response->http_status(dr, 200);
    response->http_header(dr, HEADER, 24);
    response->http_header(dr, "X-Two: 2");
    response->body_print(dr, word, 4);
    response->body_printf(dr, " %d %p ", *(int *)global->get(counter), global->get(nothing));
    response->body_write(dr, word + 4, 1);
    response->end(dr, cb_end);
}

void cb_item(duda_request_t *dr)
{
    char *name = param->get(dr, 0);
    json_t *item = json->create_object();

    json->add_to_object(item, "name", json->create_string(name));
    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: application/json", 30);
    response->body_printf(dr, "%s", json->print_gc(dr, item));
    json->delete (item);
    free(name);
    response->end(dr, cb_end);
}

void *cb_counter()
{
    static int count;

    return &count;
}

int duda_main(struct duda_api_objects *api)
{
    duda_interface_t *items;
    duda_method_t *method;
    duda_param_t *name;

    duda_service_init();

    session->init();
    duda_load_package(json, "json");
    duda_global_init(nothing, NULL);
    duda_global_init(counter, cb_counter);

    items = map->interface_new("items");
    method = map->method_new("text", "cb_text", 0);
    map->interface_add_method(method, items);
    method = map->method_new("show", "cb_item", 1);
    name = map->param_new("name", 8);
    map->method_add_param(name, method);
    map->interface_add_method(method, items);
    duda_service_add_interface(items);

    duda_service_ready();
}
