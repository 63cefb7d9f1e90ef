// SPDX-License-Identifier: Apache-2.0
/*
 * hello: the smallest service. GET /hello/ answers with a line of text.
 */
#include <duda/duda.h>

DUDA_REGISTER("Duda I/O examples", "hello");

static void say_hello(duda_request_t *dr)
{
    response->printf(dr, "Hello, world\n");
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", say_hello) ? 0 : -1;
}
