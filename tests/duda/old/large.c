// SPDX-License-Identifier: Apache-2.0
/* Level 2: responses of many parts, and of large ones. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Large");

static char numbers[1 << 20];

void cb_memory(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->print(dr, numbers, sizeof(numbers));
    response->print(dr, "end", 3);
    response->end(dr, NULL);
}

void cb_lines(duda_request_t *dr)
{
    char line[32];
    int i;

    response->http_status(dr, 200);
    for (i = 0; i < 5000; i++) {
        response->print(dr, line, snprintf(line, sizeof(line), "%d\n", i));
        if (i % 100 == 0)
            response->sendfile(dr, data->locate("part.txt"));
    }
    response->end(dr, NULL);
}

int duda_main()
{
    int i;

    for (i = 0; i < sizeof(numbers); i++)
        numbers[i] = '0' + i % 7;
    router->map("/memory/", cb_memory);
    router->map("/lines/", cb_lines);
    return 0;
}
