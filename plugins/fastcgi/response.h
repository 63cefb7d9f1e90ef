// SPDX-License-Identifier: Apache-2.0
/*
 * Reads responses: FastCGI records, and the head that an application writes as one of CGI. Functions of struct
 * mk_gateway_protocol.
 */
#ifndef FASTCGI_RESPONSE_H
#define FASTCGI_RESPONSE_H

#include <monkey/kit/fastcgi.h>
#include <monkey/kit/gateway.h>

/* What is kept of a response, of mk_gateway_call.state. Zeros at first. */
struct fastcgi_response {
    struct mk_cgi_head head;
    struct mk_fastcgi_decoder decoder;
    bool is_kept; /* the connection, by both sides */
    struct mk_cgi_stderr error_output;
};

/* Begins, also for a further connection: the last line of error output on the one before may have no end. */
void response_begin(const struct mk_gateway_call *c);
int response_unwrap(const struct mk_gateway_call *c, char *bytes, size_t *len, bool *ret_has_excess);
bool response_keeps_conn(const struct mk_gateway_call *c);
int response_parse_head(const struct mk_gateway_call *c, struct mk_response_parser *p, struct mk_field *fields,
                        struct mk_str bytes);
const char *response_describe_fault(const struct mk_gateway_call *c, int err);
int response_pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value);

#endif
