// SPDX-License-Identifier: Apache-2.0
/* Level 0: a Makefile.in of 2012. */
#include "webservice.h"
#include "words.h"

DUDA_REGISTER("Old services", "Ruled");

void cb_word(duda_request_t *dr)
{
    const char *word = get_word();

    response->http_status(dr, 200);
    response->http_header(dr, "Content-Type: text/plain", 24);
    response->print(dr, (char *)word, strlen(word));
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/word", "cb_word");
    return 0;
}
