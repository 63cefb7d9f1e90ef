// SPDX-License-Identifier: Apache-2.0
/*
 * The features of the framework (service/feature.h), and so the order of all ends.
 */
#include "objects.h"
#include "request/gc.h"
#include "request/raw_head.h"
#include "request/request.h"
#include "request/sse.h"
#include "request/tunnel.h"
#include "task/task.h"

const struct feature features[FEATURES] = {
    [FEATURE_EVERY] = {.worker_stop = every_end},
    [FEATURE_TUNNEL] = {.request_end = tunnel_finish},
    [FEATURE_CALLBACKS] = {.request_end = request_call_end},
    [FEATURE_GC] = {.request_end = gc_release},
    [FEATURE_DTHREADS] = {dthread_leave_request, dthread_stop, dthread_cancel_all},
    [FEATURE_DESCRIPTORS] = {.worker_stop = descriptor_remove_all},
    [FEATURE_TIMERS] = {.worker_stop = timer_cancel_all},
    [FEATURE_TASKS] = {task_leave_request, tasks_stop, tasks_release},
    [FEATURE_PACKAGES] = {.worker_release = package_stop_worker},
    [FEATURE_SESSION] = {.request_end = session_release},
    [FEATURE_SSE] = {.request_end = sse_leave_request},
    [FEATURE_RAW_HEAD] = {.request_end = raw_head_free},
};
