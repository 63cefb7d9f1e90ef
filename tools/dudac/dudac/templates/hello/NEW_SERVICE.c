// SPDX-License-Identifier: Apache-2.0
/*
 * NEW_SERVICE: a web service. `dudac run --watch` serves it at http://localhost:2001/NEW_SERVICE/.
 */
#include <duda/duda.h>

DUDA_REGISTER("NEW_SERVICE", "NEW_SERVICE");

static void say_hello(duda_request_t *dr)
{
    response->printf(dr, "Hello from NEW_SERVICE\n");
    response->end(dr, NULL);
}

int duda_main(void)
{
    return router->get("/", say_hello) ? 0 : -1;
}
