// SPDX-License-Identifier: Apache-2.0
/* Level 2: Content-Length is what the service says, and the body is not longer than that. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Lengths");

void cb_length(duda_request_t *dr)
{
    long length = atol(qs->get(dr, "length"));
    char *file = data->locate("numbers.txt");

    response->http_status(dr, 200);
    response->http_content_length(dr, length);
    response->print(dr, "abc", 3);
    response->sendfile(dr, file);
    response->printf(dr, "%s", "xyz");
    response->end(dr, NULL);
}

/* Of a rule without parameters there are none. */
void cb_count(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%d", param->count(dr));
    response->end(dr, NULL);
}

int duda_main()
{
    console->dashboard("/dash");
    router->map("/length/", cb_length);
    router->map("/count/", cb_count);
    router->map("/count2/:a/:b", cb_count);
    return 0;
}
