// SPDX-License-Identifier: Apache-2.0
/*
 * What it costs to parse the head of a response: prints nanoseconds for heads of three sizes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <monkey/base/response_parser.h>

enum { FIELDS_MAX = 64, HEADS = 2000000 };

static const struct mk_response_limits limits = {.head_bytes_max = 32768, .fields_max = FIELDS_MAX};

static const struct {
    const char *name, *head;
} rows[] = {
    {"short", "HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n"},
    {"usual", "HTTP/1.1 200 OK\r\nServer: gunicorn\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection: keep-alive\r\n"
              "Content-Type: text/html; charset=utf-8\r\nContent-Length: 5120\r\n"
              "Set-Cookie: session=0123456789abcdef; HttpOnly; Path=/; SameSite=Lax\r\nVary: Cookie\r\n\r\n"},
    {"long",
     "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json; charset=utf-8\r\n"
     "Transfer-Encoding: chunked\r\nConnection: keep-alive\r\nCache-Control: max-age=0, private, must-revalidate\r\n"
     "ETag: W/\"0123456789abcdef0123456789abcdef\"\r\nReferrer-Policy: strict-origin-when-cross-origin\r\n"
     "X-Frame-Options: SAMEORIGIN\r\nX-Content-Type-Options: nosniff\r\nX-Permitted-Cross-Domain-Policies: none\r\n"
     "X-XSS-Protection: 0\r\nX-Request-Id: 01234567-89ab-cdef-0123-456789abcdef\r\nX-Runtime: 0.012345\r\n"
     "Strict-Transport-Security: max-age=63072000; includeSubDomains\r\nVary: Accept, Accept-Encoding, Origin\r\n"
     "Link: </assets/application.css>; rel=preload; as=style; nopush\r\n\r\n"},
};

static double get_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
    for (size_t i = 0; i < MK_COUNT_OF(rows); i++) {
        struct mk_response_parser p;
        struct mk_field fields[FIELDS_MAX];
        double began = get_seconds();
        for (unsigned n = 0; n < HEADS; n++) {
            mk_response_parser_init(&p, &limits, MK_RESPONSE_TO_OTHER);
            if (mk_response_parser_head(&p, fields, mk_str_c(rows[i].head)) != 0)
                exit(1);
        }
        printf("%s: %u bytes, %u fields, %.0f ns\n", rows[i].name, p.head_bytes, p.n_fields,
               (get_seconds() - began) / HEADS * 1e9);
    }
    return 0;
}
