// SPDX-License-Identifier: Apache-2.0
/* It sees `request`, `response`, `monkey` and `mem` by the header of a package. */
#include "store.h"

#define BYTES 64

void cb_visits(duda_request_t *dr)
{
    unqlite_int64 len = BYTES;
    char *text = monkey->mem_alloc(BYTES);
    int result;

    memset(text, 0, BYTES);
    result = kv->fetch(&connection, "last", -1, text, &len);
    response->http_status(dr, 200);
    if (result != UNQLITE_OK)
        response->printf(dr, "none %i", request->is_get(dr));
    else
        response->printf(dr, "%.*s %i", (int)len, text, request->is_get(dr));
    kv->store(&connection, "last", -1, "before", 6);
    mem->free(text);
    response->end(dr, NULL);
}
