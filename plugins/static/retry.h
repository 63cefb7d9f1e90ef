// SPDX-License-Identifier: Apache-2.0
/*
 * Serves a request once more, a moment later.
 */
#ifndef STATIC_RETRY_H
#define STATIC_RETRY_H

#include "site.h"

/*
 * Has `serve` called for the request in a later turn of the loop, unless it ends before. It returns 0, or MK_DECLINED,
 * which is done for it. Returns 0 or -ENOMEM.
 */
int mk__static_retry_arm(struct mk_request *req, const struct static_location *at,
                         int (*serve)(struct mk_request *req, const struct static_location *at));

#endif
