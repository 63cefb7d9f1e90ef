// SPDX-License-Identifier: Apache-2.0
/*
 * What the plugins say about other paths than that of a request (<monkey/plugin.h>). Left out of small builds.
 */
#ifndef MK_SERVER_PATH_HOOKS_H
#define MK_SERVER_PATH_HOOKS_H

#include "http/request.h"

/*
 * Tells whether rules and logins let the client GET a path: as mk_request_allows_path(), by the plugins with
 * MK_PLUGIN_DECIDES_ACCESS alone. Returns 1, 0 or -errno.
 */
int mk__path_hooks_decide_access(struct mk_request *req, struct mk_str path);

#endif
