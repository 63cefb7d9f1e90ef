// SPDX-License-Identifier: Apache-2.0
/*
 * The features of the framework (service/feature.h), and so the order in which they begin and end.
 */
#include "objects.h"
#include "request/gc.h"
#include "request/raw_head.h"
#include "request/request.h"
#include "request/sse.h"
#include "request/ticket.h"
#include "request/tunnel.h"
#include "task/task.h"
#include "task/task_pool.h"

const struct feature features[FEATURES] = {
    [FEATURE_EVERY] = {.worker_stop = every_end},
    [FEATURE_TUNNEL] = {.request_end = tunnel_finish},
    [FEATURE_CALLBACKS] = {.request_end = request_call_end},
    [FEATURE_GC] = {.request_end = gc_release},
    [FEATURE_DTHREADS] = {.request_end = dthread_leave_request,
                          .worker_stop = dthread_stop,
                          .worker_release = dthread_cancel_all},
    [FEATURE_DESCRIPTORS] = {.worker_stop = descriptor_remove_all},
    [FEATURE_TIMERS] = {.worker_stop = timer_cancel_all},
    [FEATURE_TASKS] = {.request_end = task_leave_request, .worker_stop = tasks_stop, .worker_release = tasks_release},
    [FEATURE_TICKETS] = {.service_init = ticket_gate_open, .service_stop = ticket_gate_close},
    [FEATURE_SESSION] = {.request_end = session_release, .service_stop = session_conf_release},
    [FEATURE_PACKAGES] = {.worker_release = package_stop_worker,
                          .service_stop = package_stop_service,
                          .service_release = package_close_all},
    [FEATURE_SSE] = {.request_end = sse_leave_request, .service_init = sse_init},
    [FEATURE_RAW_HEAD] = {.request_end = raw_head_free},
    [FEATURE_THREADS] = {.service_init = thread_init, .service_release = thread_release},
    [FEATURE_TASK_POOL] = {.service_release = task_pool_release},
    [FEATURE_SIGNALS] = {.service_init = signals_init, .service_release = signals_release},
    [FEATURE_PRIVATE_LOOPS] = {.service_init = private_loops_init, .service_release = private_loops_release},
    [FEATURE_FOLDERS] = {.service_release = folders_release},
};
