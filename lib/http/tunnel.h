// SPDX-License-Identifier: Apache-2.0
/*
 * The tunnel of an exchange that a handler has taken over (<monkey/tunnel.h>). Lives in the arena of the exchange.
 */
#ifndef MK_HTTP_TUNNEL_H
#define MK_HTTP_TUNNEL_H

#include <monkey/tunnel.h>

struct mk__tunnel {
    mk_tunnel_fn ready;
    void *ctx;
};

#endif
