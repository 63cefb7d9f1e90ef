// SPDX-License-Identifier: Apache-2.0
/*
 * FastCGI and SCGI, as <monkey/kit/gateway.h> uses them.
 */
#ifndef FASTCGI_PROTOCOL_H
#define FASTCGI_PROTOCOL_H

#include <monkey/kit/gateway.h>

extern const struct mk_gateway_protocol fastcgi_protocol, scgi_protocol;

#endif
