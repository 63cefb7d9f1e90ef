// SPDX-License-Identifier: Apache-2.0
/*
 * stall: holds up worker 1 once per generation, behind its worker_start. Its reload is complete a while later than that
 * of the other workers.
 */
#include <monkey/plugin.h>

#include <time.h>

static void stall(struct mk_task *task)
{
    const struct timespec pause = {.tv_sec = 1};
    (void)task;
    mk_log_info("stall: worker 1 pauses");
    nanosleep(&pause, NULL);
    mk_log_info("stall: worker 1 continues");
}

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    static struct mk_task task;
    (void)ret_state;
    if (mk_worker_index(worker) != 1)
        return 0;
    mk_task_init(&task, stall);
    mk_task_schedule(mk_worker_loop(worker), &task);
    return 0;
}

MK_PLUGIN(stall) = {
    MK_PLUGIN_HEAD("stall", "1.0", "holds up one worker"),
    .worker_start = start_worker,
};
