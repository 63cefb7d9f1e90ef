// SPDX-License-Identifier: Apache-2.0
/* Level 1: headers of requests and responses. */
#include "webservice.h"

DUDA_REGISTER("Old services", "Headers");

void cb_get(duda_request_t *dr)
{
    char *with = request->header_get(dr, "x-test:");
    char *without = request->header_get(dr, "X-Test");

    gc->add(dr, with);
    gc->add(dr, without);
    response->http_status(dr, 200);
    response->printf(dr, "[%s] [%s] %s", with, without, request->header_get(dr, "X-None:") ? "some" : "none");
    response->end(dr, NULL);
}

void cb_compare(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i %i %i %i %i %i %i", request->header_cmp(dr, "X-Test:", "Va"),
                     request->header_cmp(dr, "X-Test", " Value"), request->header_cmp(dr, "X-Test:", "va"),
                     request->header_cmp(dr, "X-Test:", "Values"), request->header_contains(dr, "X-Test:", "LU"),
                     request->header_contains(dr, "X-Test:", "none"), request->header_contains(dr, "X-None:", "a"));
    response->end(dr, NULL);
}

/* The blank in front of a value can be searched for, which is how services looked for a first word. */
void cb_contains(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->printf(dr, "%i %i %i", request->header_contains(dr, "X-Test", " value"),
                     request->header_contains(dr, "X-Test", "value"),
                     request->header_contains(dr, "X-Test:", " value"));
    response->end(dr, NULL);
}

void cb_types(duda_request_t *dr)
{
    response->http_status(dr, 201);
    response->http_header(dr, "X-First: 1");
    response->http_header_n(dr, "X-Second: 2 and more", 11);
    response->http_content_type(dr, "json");
    if (response->http_content_type(dr, "no-such-type") == -1)
        response->http_header(dr, "X-Third: 3");
    response->print(dr, "{}", 2);
    response->end(dr, NULL);
}

void cb_length(duda_request_t *dr)
{
    response->http_status(dr, 200);
    response->http_content_length(dr, -1);
    response->print(dr, "open", 4);
    response->end(dr, NULL);
}

void cb_raw(duda_request_t *dr)
{
    char *raw = "HTTP/1.1 203 Raw\r\nContent-Length: 3\r\nX-Raw: yes\r\n\r\nraw";

    response->headers_off(dr);
    response->print(dr, raw, strlen(raw));
    response->end(dr, NULL);
}

/* The version is the server's, whatever the service says. */
void cb_version(duda_request_t *dr)
{
    response->headers_off(dr);
    response->printf(dr, "HTTP/5.0 200 OK\r\n");
    response->printf(dr, "Content-Length: 3\r\n\r\n");
    response->printf(dr, "OK\n");
    response->end(dr, NULL);
}

void cb_sent(duda_request_t *dr)
{
    int first, second;

    response->http_status(dr, 200);
    first = response->send_headers(dr);
    second = response->send_headers(dr);
    response->printf(dr, "%i %i", first, second);
    response->flush(dr);
    response->print(dr, "!", 1);
    response->end(dr, NULL);
}

int duda_main()
{
    map->static_add("/get/", "cb_get");
    map->static_add("/compare/", "cb_compare");
    map->static_add("/contains/", "cb_contains");
    map->static_add("/types/", "cb_types");
    map->static_add("/length/", "cb_length");
    map->static_add("/raw/", "cb_raw");
    map->static_add("/version/", "cb_version");
    map->static_add("/sent/", "cb_sent");
    return 0;
}
