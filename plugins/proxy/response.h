// SPDX-License-Identifier: Apache-2.0
/*
 * Passes the head of a backend's response to the client.
 */
#ifndef PROXY_RESPONSE_H
#define PROXY_RESPONSE_H

#include "conf.h"
#include "send_file.h"

/* Sets status and headers of the response. Copies them. Returns 0 or -errno. */
int response_pass_head(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                       const struct mk_field *fields, struct mk_str head);
/*
 * Sets the headers of a response of 101, and Upgrade. Copies them. On HTTP/2 it is a 200 without those that belong to
 * HTTP/1.1 (RFC 8441 section 5). Returns 0 or -errno.
 */
int response_pass_upgrade(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                          const struct mk_field *fields, struct mk_str head, struct mk_str token);
/* Returns the value of a header, which is not repeated; `.p` NULL: there is none, or several. */
struct mk_str response_find(const struct mk_response_parser *p, const struct mk_field *fields, struct mk_str head,
                            struct mk_str name);
/* Tells whether the client or the backend uses a login that counts for the connection (bound.h). */
bool response_binds_conn(struct mk_request *req, const struct mk_response_parser *p, const struct mk_field *fields,
                         struct mk_str head);
/*
 * Finds a file that the backend names, with what it says of it; copies the strings. Returns 1, 0 (there is none, or
 * there are several) or -ENOMEM.
 */
int response_find_file(struct mk_request *req, const struct mk_response_parser *p, const struct mk_field *fields,
                       struct mk_str head, struct named_file *ret);
/* Adds the headers that stay when the server sends a file instead. Copies them. Returns 0 or -errno. */
int response_keep_for_file(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                           const struct mk_field *fields, struct mk_str head);
/* Adds the headers that stay when the server sends its page for the status instead. Copies them. Returns 0 or -errno.
 */
int response_keep_for_error(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                            const struct mk_field *fields, struct mk_str head);
/* Sends an interim response, if the client is to get it. */
void response_pass_interim(struct mk_request *req, const struct proxy_conf *conf, const struct mk_response_parser *p,
                           const struct mk_field *fields, struct mk_str head);
/* Adds the trailers of the backend that may be trailers. */
void response_add_trailers(struct mk_request *req, const struct mk_buf *trailers);

#endif
