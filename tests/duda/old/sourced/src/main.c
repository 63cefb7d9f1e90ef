// SPDX-License-Identifier: Apache-2.0
/* Level 1: the sources are in a folder next to html, and a name with dots says so. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Sourced");

extern const char *word;

void cb_word(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%s %d", word, OTHER);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/word", "cb_word");
    return 0;
}
