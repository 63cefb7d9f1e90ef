// SPDX-License-Identifier: Apache-2.0
/* Counts the users that need epochs (<monkey/base/epoch.h>) of a loop; the first one adds it to the readers. */
#include <monkey/base/epoch.h>

#include <assert.h>

#include "loop/epoch.h"
#include "loop/loop.h"

void mk_epoch_join(struct mk_loop *loop)
{
    assert(mk__loop_is_owner(loop));
    if (loop->epoch.users++ == 0)
        mk__epoch_add(&loop->epoch);
}

void mk_epoch_leave(struct mk_loop *loop)
{
    assert(mk__loop_is_owner(loop) && loop->epoch.users);
    if (--loop->epoch.users == 0)
        mk__epoch_remove(&loop->epoch);
}
