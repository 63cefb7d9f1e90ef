// SPDX-License-Identifier: Apache-2.0
/*
 * A turn of a loop over real descriptors, for tests that do not use the environment of harness.h.
 */
#ifndef MK_UNIT_TURN_H
#define MK_UNIT_TURN_H

#include "testing.h"

#include "loop/loop.h"

static inline void mk_test_ignore_task(struct mk_task *task)
{
    (void)task;
}

/* One turn that does not wait: a task is due. */
static inline void mk_test_turn(struct mk_loop *loop)
{
    struct mk_task task;
    mk_task_init(&task, mk_test_ignore_task);
    mk_task_schedule(loop, &task);
    assert_int_equal(mk__loop_turn(loop), 0);
}

#endif
