// SPDX-License-Identifier: Apache-2.0
/*
 * The object `worker`: functions that each worker of a service calls before it serves (pre_loop()). Its threads are in
 * thread.h.
 */
#ifndef DUDA_CORE_SERVICE_WORKER_H
#define DUDA_CORE_SERVICE_WORKER_H

#include "service/service.h"

struct pre_loop {
    struct pre_loop *next;
    void (*fn)(void *data);
    void *data;
};

/* Of a service; grows in duda_main() only. */
struct pre_loops {
    struct pre_loop *first;
};

FEATURE_SLOT(pre_loops_of, struct pre_loops, service, FEATURE_PRE_LOOPS)

/* Hook of features.c: calls them. Returns 0. */
int worker_run_pre_loops(struct service_worker *w);

#endif
