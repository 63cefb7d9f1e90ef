// SPDX-License-Identifier: Apache-2.0
/* Level 1: methods, bodies and memory. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Bodies");

void cb_method(duda_request_t *dr)
{
    response->http_status(dr, 200);
    if (request->is_get(dr) == MK_TRUE)
        response->print(dr, "get", 3);
    if (request->is_head(dr) == MK_TRUE)
        response->print(dr, "head", 4);
    if (request->is_post(dr) == MK_TRUE)
        response->print(dr, "post", 4);
    if (request->is_put(dr) == MK_TRUE)
        response->print(dr, "put", 3);
    if (request->is_delete(dr) == MK_TRUE)
        response->print(dr, "delete", 6);
    response->end(dr, NULL);
}

void cb_echo(duda_request_t *dr)
{
    unsigned long len = 99;
    char *data = request->get_data(dr, &len);
    char *upper;
    int i;

    if (!data) {
        response->http_status(dr, 400);
        response->printf(dr, "no data %lu %ld", len, request->content_length(dr));
        response->end(dr, NULL);
    }
    gc->add(dr, data);
    upper = mem->alloc_z(len + 1);
    for (i = 0; i < len; i++)
        upper[i] = toupper(data[i]);
    gc->add(dr, upper);
    response->http_status(dr, 200);
    response->printf(dr, "%i %i %ld %i ", request->is_data(dr),
                     request->is_content_type(dr, "application/x-www-form-urlencoded"), request->content_length(dr),
                     data[len] == '\0');
    response->print(dr, upper, len);
    response->end(dr, NULL);
}

void cb_memory(duda_request_t *dr)
{
    char *a = mem->alloc(10), *b = malloc(10), *c = mem->realloc(b, 20);

    free(a);
    snprintf(c, 20, "memory");
    response->http_status(dr, 200);
    response->printf(dr, "%s", c);
    mem->free(c);
    a = monkey->mem_realloc(monkey->mem_alloc_z(1), 100);
    response->printf(dr, " %i", a[0]);
    monkey->mem_free(a);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/method/", "cb_method");
    map->static_add("/echo/", "cb_echo");
    map->static_add("/memory/", "cb_memory");
    return 0;
}
