// SPDX-License-Identifier: Apache-2.0
/*
 * slow: takes a while to start, after the configuration has been read.
 */
#include <monkey/plugin.h>

#include <time.h>

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct timespec while_ = {.tv_nsec = 500 * 1000 * 1000};
    (void)worker;
    (void)ret_state;
    mk_log_info("slow: a worker starts");
    nanosleep(&while_, NULL);
    return 0;
}

MK_PLUGIN(slow) = {
    MK_PLUGIN_HEAD("slow", "1.0", "takes its time"),
    .worker_start = start_worker,
};
