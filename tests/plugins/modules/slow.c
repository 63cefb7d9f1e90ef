// SPDX-License-Identifier: Apache-2.0
/*
 * slow: its workers start, after the configuration has been read, when the file SLOW_UNTIL of the environment is there.
 */
#include <monkey/plugin.h>

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { PAUSES_MAX = 10000 };

static int start_worker(struct mk_worker *worker, void **ret_state)
{
    const struct timespec pause = {.tv_nsec = 5 * 1000 * 1000};
    const char *path = getenv("SLOW_UNTIL");
    (void)worker;
    (void)ret_state;
    mk_log_info("slow: a worker starts");
    for (int i = 0; path && access(path, F_OK) != 0 && i < PAUSES_MAX; i++)
        nanosleep(&pause, NULL);
    return 0;
}

MK_PLUGIN(slow) = {
    MK_PLUGIN_HEAD("slow", "1.0", "takes its time"),
    .worker_start = start_worker,
};
