// SPDX-License-Identifier: Apache-2.0
/*
 * What the process does that starts others.
 */
#ifndef MK_KIT_CHILD_STARTER_LOOP_H
#define MK_KIT_CHILD_STARTER_LOOP_H

#include "tag.h"

/*
 * Kills what starters of former numbers have left behind, and serves the channels that come over the socket `control`
 * until that is closed and all children have ended.
 */
_Noreturn void mk__starter_loop_run(int control, const struct mk__tags *tags, uint64_t number);

#endif
