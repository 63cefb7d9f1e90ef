// SPDX-License-Identifier: Apache-2.0
/* Level 0: the hello world of the first articles. */
#include "webservice.h"

DUDA_REGISTER("Duda I/O Examples", "Hello World");

void cb_hello(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain");
    response->print(dr, "hello world!", 12);
    response->end(dr, NULL);
}

int duda_main()
{
    duda_interface_t *if_examples;
    duda_method_t *method;

    if_examples = map->interface_new("examples");
    method = map->method_new("hello", "cb_hello", 0);
    map->interface_add_method(method, if_examples);
    duda_service_add_interface(if_examples);
    return 0;
}
