// SPDX-License-Identifier: Apache-2.0
/*
 * The answer of a server with `Type Forward`: what it decides, and what of it goes into the request or to the client.
 */
#ifndef AUTH_FORWARD_RESPONSE_H
#define AUTH_FORWARD_RESPONSE_H

#include <monkey/http_client.h>
#include <monkey/request.h>

#include "forward_conf.h"

enum { FORWARD_BODY_BYTES_MAX = 65536, FORWARD_VALUES_BYTES_MAX = 65536, FORWARD_COOKIES_MAX = 16 };

enum forward_decision {
    FORWARD_PASS,    /* 2xx */
    FORWARD_REFUSE,  /* a redirect or 4xx, which the client gets */
    FORWARD_INVALID, /* another status, which decides nothing */
};

enum forward_decision forward_decide(unsigned status);

/* What a server has answered: the user, and the values of CopyHeaders, in their order. `.p` NULL: it sent none. */
struct forward_answer {
    union {
        struct {
            struct mk_str user, values[FORWARD_HEADERS_MAX];
        };
        struct mk_str texts[1 + FORWARD_HEADERS_MAX];
    };
    uint32_t n; /* of the values */
};

/*
 * Reads the headers that the section wants; several lines of one are joined by ", ". The strings are in `arena`, or in
 * the response. Returns 0 or -ENOMEM.
 */
int forward_read_answer(struct forward_answer *ret, const struct forward_conf *conf,
                        const struct mk_http_response *response, struct mk_arena *arena);

/* Adds the lines Set-Cookie of a response to that of the request, FORWARD_COOKIES_MAX at most. Returns 0 or -ENOMEM. */
int forward_pass_cookies(struct mk_request *req, const struct mk_http_response *response);

/*
 * Sends status, body and the headers that a client needs for a login. In place of a body that is empty, or longer than
 * FORWARD_BODY_BYTES_MAX, it gets the page of the status.
 */
void forward_send_refusal(struct mk_request *req, const struct mk_http_response *response);

#endif
