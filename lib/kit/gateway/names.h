// SPDX-License-Identifier: Apache-2.0
/*
 * Looks up the names of backends when a configuration is only checked (monkey -t). A server looks them up for each
 * connection, so a name without an address is a warning.
 */
#ifndef MK_GATEWAY_NAMES_H
#define MK_GATEWAY_NAMES_H

#include <monkey/kit/gateway.h>

enum { MK__GW_NAMES_WAIT_MS = 2000 }; /* for all names of a configuration together */

/*
 * Warns if the name in `To` of a section, which is no group's, has no address. `*left_ms` is the time that is left; it
 * is reduced.
 */
void mk__gw_names_check(struct mk_host *host, const struct mk_gateway_conf *conf, uint32_t *left_ms);

#endif
