// SPDX-License-Identifier: Apache-2.0
/*
 * Clients on this machine, for pages about the server that nothing else protects. In the kit: plugins link
 * -lmonkey-kit.
 */
#ifndef MONKEY_LOCAL_CLIENT_H
#define MONKEY_LOCAL_CLIENT_H

#include "../plugin.h"

MK_C_BEGIN

/*
 * Returns true if the request asks for an address, `localhost` or a name of its host. A page of another site can let
 * its own name resolve to this machine (DNS rebinding), and its scripts may then read what they get here; it cannot
 * choose one of these.
 */
MK_API bool mk_local_client_names_host(struct mk_request *req);
/*
 * Returns true if both the other end of the connection and the client are on this machine (loopback addresses and Unix
 * sockets), and the request names its host. Clients behind a proxy here count as such unless TrustedProxies names it.
 */
MK_API bool mk_local_client_is_here(struct mk_request *req);

MK_C_END

#endif
