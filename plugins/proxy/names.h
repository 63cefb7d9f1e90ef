// SPDX-License-Identifier: Apache-2.0
/*
 * Looks up the names of backends when a configuration is only checked (monkey -t). A server looks them up for each
 * connection, so a name without an address is a warning.
 */
#ifndef PROXY_NAMES_H
#define PROXY_NAMES_H

#include "clients.h"

enum { NAMES_WAIT_MS = 2000 }; /* for all names of a configuration together */

/*
 * Warns of the names of a host's sections that have no address, and are no group's. `*left_ms` is the time that is
 * left; it is reduced.
 */
void names_check(struct mk_host *host, const struct route *routes, uint32_t *left_ms);

#endif
