// SPDX-License-Identifier: Apache-2.0
/* Level 2: several files, whose list is made of the files. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Wild");

int sum(int a, int b);
int deep(void);
int deeper(void);

void cb_sum(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d %d", sum(deep(), deeper()), LOUD);
    response->end(dr, NULL);
}

int duda_main()
{
    router->root(cb_sum);
    return 0;
}
