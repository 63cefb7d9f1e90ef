// SPDX-License-Identifier: Apache-2.0
/*
 * Tells when a function of the API may be called (phase.h).
 */
#include "common/phase.h"

#include "common/current.h"
#include "common/api_error.h"
#include "service/service.h"

#include <stdio.h>

__attribute__((tls_model("initial-exec"))) _Thread_local struct current current;

static const struct {
    unsigned phases;
    const char *where;
} names[] = {
    {PHASE_MAIN, "in duda_main()"},
    {PHASE_WORKER, "in callbacks of workers"},
    {PHASE_RUNNING, "in callbacks of workers and threads of worker->spawn()"},
    {PHASE_MAIN | PHASE_RUNNING, "in duda_main(), callbacks of workers and threads of worker->spawn()"},
};

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

static const char *get_place(unsigned phases)
{
    for (size_t i = 0; i < MK_COUNT_OF(names); i++) {
        if (names[i].phases == phases)
            return names[i].where;
    }
    return "in functions that the framework calls";
}

bool phase_check(unsigned phases, const char *call)
{
    char reason[128];
    if (phase_now() & phases)
        return true;
    snprintf(reason, sizeof(reason), "it works only %s; the call did nothing", get_place(phases));
    api_error_log(current.worker, call, reason);
    return false;
}
