// SPDX-License-Identifier: Apache-2.0
/* Level 1: responses from variables of the function, which were sent before it returned. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Stack");

void cb_lines(duda_request_t *dr)
{
    char line[64];
    int i, len;

    response->http_status(dr, 200);
    for (i = 0; i < 3; i++) {
        len = snprintf(line, sizeof(line), "line %d\n", i);
        response->print(dr, line, len);
    }
    response->end(dr, NULL);
}

void cb_page(duda_request_t *dr)
{
    char page[4000];

    memset(page, 'x', sizeof(page));
    response->http_status(dr, 200);
    response->print(dr, page, sizeof(page));
    response->end(dr, NULL);
}

void cb_freed(duda_request_t *dr)
{
    char *page = mem->alloc(4000);

    memset(page, 'y', 4000);
    response->http_status(dr, 200);
    response->print(dr, page, 4000);
    response->finalize(dr, NULL);
    mem->free(page);
}

/* A large variable, as the stack of a thread has room for. */
void cb_large(duda_request_t *dr)
{
    int size = 65536 * 4;
    char raw[size];

    memset(raw, 'z', size);
    response->http_status(dr, 200);
    response->printf(dr, "%c %.*s", raw[size - 1], 3, raw);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/lines", "cb_lines");
    map->static_add("/page", "cb_page");
    map->static_add("/freed", "cb_freed");
    map->static_add("/large", "cb_large");
    return 0;
}
