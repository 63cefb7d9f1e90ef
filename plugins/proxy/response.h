// SPDX-License-Identifier: Apache-2.0
/*
 * Passes the head of a backend's response to the client: functions of struct mk_gateway_protocol.
 */
#ifndef PROXY_RESPONSE_H
#define PROXY_RESPONSE_H

#include "conf.h"

int response_check_head(const struct mk_gateway_call *c, const struct mk_gateway_head *head, bool *ret_binds);
int response_pass_header(const struct mk_gateway_call *c, struct mk_str name, struct mk_str value);
/* With 426: the protocol that is required. */
int response_pass_more(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
/*
 * Sets the headers of a response of 101, and Upgrade. On HTTP/2 it is a 200 without those that belong to HTTP/1.1 (RFC
 * 8441 section 5). Returns 0, -EPROTO (that is not what was asked for) or another -errno.
 */
int response_pass_upgrade(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
/* Sends an interim response, if the client is to get it. */
void response_pass_interim(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
/* Adds the trailers of the backend that may be trailers. */
void response_add_trailers(const struct mk_gateway_call *c, struct mk_str lines);

#endif
