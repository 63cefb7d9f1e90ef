// SPDX-License-Identifier: Apache-2.0
/* The functions that leave early, and those of strings. */
#include "files3.h"

/* end() leaves the function, also where it is the only statement of a branch. */
void cb_early(duda_request_t *dr)
{
    char *data = qs->get(dr, "leave");
    int request = 1, map = 2, event = 3, end = 4;

    response->http_status(dr, 200);
    if (data)
        response->end(dr, NULL);
    else if (request + map + event + end != 10)
        response->end(dr, NULL);
    response->print(dr, "stayed", 6);
    response->end(dr, NULL);
    response->print(dr, "dead", 4);
}

void cb_strings(duda_request_t *dr)
{
    char *text = NULL, *part;
    unsigned long len = 0;

    monkey->str_build(&text, &len, "%s-%i", "monkey", 7);
    part = monkey->str_copy_substr(text, 1, 4);
    gc->add(dr, text);
    gc->add(dr, part);
    response->http_status(dr, 200);
    response->printf(dr, "%s %lu %s %i %i %i %i", text, len, part, monkey->str_search(text, "KEY", MK_STR_SENSITIVE),
                     monkey->str_search(text, "KEY", MK_STR_INSENSITIVE),
                     monkey->str_search_n(text, "key", MK_STR_SENSITIVE, 5),
                     monkey->str_search_n(text, "key", MK_STR_SENSITIVE, 6));
    monkey->socket_set_tcp_nodelay(dr->cs->socket);
    response->printf(dr, " %i %i", dr->socket == dr->cs->socket, request->validate_socket(dr->socket));
    response->end(dr, NULL);
}
