// SPDX-License-Identifier: Apache-2.0
/*
 * Disk threads: a small pool, shared by all loops of a server, for system calls that may block.
 */
#ifndef MK_LOOP_JOB_H
#define MK_LOOP_JOB_H

#include <monkey/base/thread_pool.h>

/*
 * Opens the pool for mk_job_submit(). Its loops must still accept messages in mk_thread_pool_close(), which finishes
 * the jobs that wait.
 */
void mk__job_open_pool(struct mk_thread_pool *pool, unsigned threads_max);

#endif
