// SPDX-License-Identifier: Apache-2.0
/*
 * Why a group has no server for a request, for the log.
 */
#ifndef UPSTREAM_EXPLAIN_H
#define UPSTREAM_EXPLAIN_H

#include "groups.h"

/* As mk_upstreams.explain. */
void explain_failure(const struct mk_upstream_group *group, int err, struct mk_buf *out);

#endif
