// SPDX-License-Identifier: Apache-2.0
/*
 * Tells what the code of a service that runs is called for (current.h).
 */
#include "common/current.h"

__attribute__((tls_model("initial-exec"))) _Thread_local struct current current;

enum phase phase_now(void)
{
    if (!current.service)
        return PHASE_NONE;
    if (current.worker)
        return current.worker->ended ? PHASE_LEAVE : PHASE_WORKER;
    if (current.thread)
        return PHASE_THREAD;
    return current.service->state == SERVICE_LOADED ? PHASE_MAIN : PHASE_EXIT;
}
