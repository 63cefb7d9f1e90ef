// SPDX-License-Identifier: Apache-2.0
/*
 * What a start and a reload check on this machine, and mk_server_check() without either. Main thread.
 */
#ifndef MK_SERVER_CHECK_H
#define MK_SERVER_CHECK_H

#include <monkey/monkey.h>

#include "server/generation/generation.h"

/* Adds the error of the n-th Listen to the generation's problems. */
MK_COLD void mk__check_report_listener(struct mk_generation *g, unsigned nth, int err);
/* Checks that ErrorLog can be written. Returns 0, or -EINVAL with an error among the generation's problems. */
MK_COLD int mk__check_log(struct mk_generation *g);
/* Checks all for mk_server_check(); `is_own` as for mk_server_on_check(). Returns 0 or -EINVAL. */
MK_COLD int mk__check_generation(struct mk_generation *g, mk_server_is_own_fn is_own, void *ctx);

#endif
