// SPDX-License-Identifier: Apache-2.0
/*
 * Passes the head of a backend's response to the client.
 */
#ifndef MK_GATEWAY_RESPONSE_H
#define MK_GATEWAY_RESPONSE_H

#include "send_file.h"

#include <monkey/kit/gateway.h>

/* Sets status and headers of the response. Copies them. Returns 0 or -errno. */
int mk__gw_response_pass(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
/*
 * Finds a file that the backend names, with what it says of it; copies the strings. Returns 1, 0 (there is none, or
 * there are several) or -ENOMEM.
 */
int mk__gw_response_find_file(const struct mk_gateway_call *c, const struct mk_gateway_head *head,
                              struct mk__gw_named_file *ret);
/* Add the headers that stay when the server sends a file, or its page for the status. Copy them. Return 0 or -errno. */
int mk__gw_response_keep_for_file(const struct mk_gateway_call *c, const struct mk_gateway_head *head);
int mk__gw_response_keep_for_error(const struct mk_gateway_call *c, const struct mk_gateway_head *head);

#endif
