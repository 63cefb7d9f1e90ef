// SPDX-License-Identifier: Apache-2.0
/*
 * HTTP/1.1 between this server and a backend, as <monkey/kit/gateway.h> uses it.
 */
#ifndef PROXY_PROTOCOL_H
#define PROXY_PROTOCOL_H

#include <monkey/kit/gateway.h>

extern const struct mk_gateway_protocol proxy_protocol;

#endif
