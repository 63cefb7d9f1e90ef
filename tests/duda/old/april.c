// SPDX-License-Identifier: Apache-2.0
/* April of 2012: a response ends without a callback, and files are read by the server's own function. */
#include "webservice.h"

DUDA_REGISTER("Old services", "April");

void cb_file(duda_request_t *dr)
{
    char *path = data->locate("notes.txt");
    char *text = monkey->file_to_buffer(path);
    char *missing = monkey->file_to_buffer("/no/such/file");

    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain", 24);
    response->body_write(dr, text, strlen(text));
    if (!missing)
        response->body_write(dr, "none", 4);
    monkey->mem_free(text);
    response->end(dr);
    abort();
}

int duda_init(struct duda_api_objects *api)
{
    duda_interface_t *notes;
    duda_method_t *method;

    duda_service_init();

    notes = map->interface_new("notes");
    method = map->method_new("file", "cb_file", 0);
    map->interface_add_method(method, notes);
    duda_service_add_interface(notes);

    duda_service_ready();
}
