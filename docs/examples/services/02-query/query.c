// SPDX-License-Identifier: Apache-2.0
/*
 * query: reads the query string. GET /query/?name=Ada greets Ada; GET /query/sum?n=1&n=2&n=39 adds numbers.
 */
#include <duda/duda.h>

#include <stdlib.h>

DUDA_REGISTER("Duda I/O examples", "query string");

static void greet(duda_request_t *dr)
{
    const char *name = qs->get(dr, "name");
    response->http_content_type(dr, "txt");
    response->printf(dr, "Hello, %s\n", name && name[0] ? name : "world");
    response->end(dr, NULL);
}

/* A name may be repeated: next() returns its values one by one. */
static void add_numbers(duda_request_t *dr)
{
    long sum = 0;
    int at = 0;
    const char *value;
    while ((value = qs->next(dr, "n", &at)))
        sum += strtol(value, NULL, 10);
    response->printf(dr, "%ld\n", sum);
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", greet) && router->get("/sum", add_numbers) ? 0 : -1;
}
