// SPDX-License-Identifier: Apache-2.0
/*
 * The header of the PROXY protocol, version 1 or 2, which tells a backend the addresses of the client's connection. It
 * is sent once, before anything else, also before TLS.
 */
#ifndef PROXY_PROXY_HEADER_H
#define PROXY_PROXY_HEADER_H

#include "conf.h"

#include <monkey/base/address.h>

enum { PROXY_HEADER_BYTES_MAX = 128 };

/*
 * Writes the header for a connection from `client` to `server`; if only one of them is IPv4, it is written as an
 * IPv4-mapped address. A client without an IP address is unknown; a server without one is the unspecified address.
 */
void proxy_header_write(struct mk_buf *out, enum proxy_send_proxy version, struct mk_address client,
                        struct mk_address server);

#endif
