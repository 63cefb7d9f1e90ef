// SPDX-License-Identifier: Apache-2.0
/* Gives a struct service and a struct service_worker of a test the slots of all features. */
#ifndef SERVICE_SLOTS_H
#define SERVICE_SLOTS_H

#include "duda/core/service/service.h"

struct mk_test_slots {
    struct service *service;
    struct service_worker *worker;
};

/* `worker` may be NULL. */
static inline void mk_test_slots_open(struct mk_test_slots *slots, struct service *s, struct service_worker *worker)
{
    slots->service = service_new(features);
    assert_non_null(slots->service);
    slots->worker = service_worker_new(slots->service);
    assert_non_null(slots->worker);
    s->features = features;
    memcpy(s->slots, slots->service->slots, sizeof(s->slots));
    if (!worker)
        return;
    worker->service = s;
    memcpy(worker->slots, slots->worker->slots, sizeof(worker->slots));
}

static inline void mk_test_slots_close(struct mk_test_slots *slots)
{
    service_worker_free(slots->worker);
    service_free(slots->service);
}

#endif
