// SPDX-License-Identifier: Apache-2.0
/*
 * The features of the framework (service/feature.h), and so the order in which they begin and end.
 */
#include "common/api_error.h"
#include "compat/map.h"
#include "compat/old.h"
#include "console/console_path.h"
#include "dthread/dthread.h"
#include "event/descriptor.h"
#include "event/every.h"
#include "event/private_loop.h"
#include "event/signals.h"
#include "event/timer.h"
#include "log/last_lines.h"
#include "log/log.h"
#include "request/gc.h"
#include "request/raw_head.h"
#include "request/request.h"
#include "request/sse.h"
#include "request/sse_channels.h"
#include "request/ticket.h"
#include "request/tunnel.h"
#include "route/router.h"
#include "service/counts.h"
#include "service/folder.h"
#include "service/global.h"
#include "service/inbox.h"
#include "service/package.h"
#include "service/thread.h"
#include "session/session.h"
#include "task/task.h"

#include <assert.h>

static_assert(FEATURE_GLOBALS > FEATURE_PACKAGES && FEATURE_PACKAGES > FEATURE_PRE_LOOPS &&
                  FEATURE_PRE_LOOPS > FEATURE_LOG && FEATURE_LOG > FEATURE_THREADS,
              "a worker has its values and packages, then its callbacks run, then its log and its threads begin");
static_assert(FEATURE_MAP > FEATURE_ROUTER && FEATURE_ROUTER > FEATURE_COUNTS,
              "a service that cannot be completed has no counters yet");
static_assert(FEATURE_PACKAGES < FEATURE_TASK_POOL && FEATURE_PACKAGES < FEATURE_SIGNALS &&
                  FEATURE_PACKAGES < FEATURE_PRIVATE_LOOPS,
              "destructors of packages may still use them");

const struct feature features[FEATURES] = {
    [FEATURE_THREADS] = {.service_bytes = sizeof(struct thread_set),
                         .service_init = thread_init,
                         .worker_start = thread_start_all,
                         .threads_stop = thread_stop_all,
                         .threads_join = thread_join_all,
                         .threads_detach = thread_detach_all,
                         .service_release = thread_release,
                         .crash_describe = thread_describe_crash},
    [FEATURE_LOG] = {.service_bytes = sizeof(struct logs), .worker_start = log_start, .service_stop = log_end},
    [FEATURE_COUNTS] = {.service_bytes = sizeof(struct counts),
                        .service_complete = counts_make,
                        .worker_serve = counts_serve,
                        .service_release = counts_close},
    [FEATURE_EVERY] = {.service_bytes = sizeof(struct everies),
                       .worker_serve = every_begin,
                       .worker_wake = every_take_over,
                       .worker_retire = every_end,
                       .worker_stop = every_end},
    [FEATURE_TUNNEL] = {.request_end = tunnel_finish, .request_retire = tunnel_retire},
    [FEATURE_CALLBACKS] = {.request_end = request_call_end},
    [FEATURE_GC] = {.request_end = gc_release},
    [FEATURE_DTHREADS] = {.worker_bytes = sizeof(struct dthreads),
                          .worker_init = dthread_init,
                          .request_end = dthread_leave_request,
                          .worker_stop = dthread_stop,
                          .worker_report_end = dthread_report_end,
                          .worker_release = dthread_cancel_all,
                          .crash_describe = dthread_describe_crash,
                          .crash_request = dthread_find_crash_request},
    [FEATURE_DESCRIPTORS] = {.worker_bytes = sizeof(struct descriptors), .worker_stop = descriptor_remove_all},
    [FEATURE_TIMERS] = {.worker_bytes = sizeof(struct slots), .worker_stop = timer_cancel_all},
    [FEATURE_TASKS] = {.worker_bytes = sizeof(struct tasks),
                       .worker_init = tasks_init,
                       .request_end = task_leave_request,
                       .worker_wake = tasks_deliver,
                       .worker_stop = tasks_stop,
                       .worker_is_held = tasks_are_pending,
                       .worker_wait = tasks_wait,
                       .worker_release = tasks_release},
    [FEATURE_TICKETS] = {.service_bytes = sizeof(struct tickets),
                         .service_init = ticket_gate_open,
                         .service_stop = ticket_gate_close},
    [FEATURE_SESSION] = {.service_bytes = sizeof(struct service_sessions),
                         .request_end = session_release,
                         .service_exit = session_conf_release,
                         .service_stop = session_conf_release},
    [FEATURE_PRE_LOOPS] = {.service_bytes = sizeof(struct pre_loops), .worker_start = thread_run_pre_loops},
    [FEATURE_PACKAGES] = {.service_bytes = sizeof(struct packages),
                          .worker_bytes = sizeof(struct package_workers),
                          .worker_start = package_start_worker,
                          .worker_release = package_stop_worker,
                          .service_orphan = package_leave_all,
                          .service_stop = package_stop_service,
                          .service_release = package_close_all},
    [FEATURE_GLOBALS] = {.service_bytes = sizeof(struct globals),
                         .worker_bytes = sizeof(struct global_values),
                         .worker_start = global_start_worker,
                         .worker_release = global_release_worker},
    [FEATURE_INBOX] = {.worker_bytes = sizeof(struct inbox), .worker_init = inbox_open, .worker_free = inbox_close},
    [FEATURE_REQUESTS] = {.worker_bytes = sizeof(struct request_slabs),
                          .worker_init = request_pool_init,
                          .worker_free = request_pool_release},
    [FEATURE_SSE] = {.service_bytes = sizeof(struct sse_service),
                     .worker_bytes = sizeof(struct sse_channels),
                     .service_init = sse_init,
                     .request_end = sse_leave_request,
                     .worker_free = sse_release_worker},
    [FEATURE_RAW_HEAD] = {.request_end = raw_head_free},
    [FEATURE_TASK_POOL] = {.service_bytes = sizeof(struct task_service),
                           .threads_stop = task_pool_stop,
                           .threads_join = task_pool_join,
                           .threads_detach = task_pool_detach,
                           .service_release = task_pool_release},
    [FEATURE_SIGNALS] = {.service_bytes = sizeof(struct signals),
                         .service_init = signals_init,
                         .service_release = signals_release},
    [FEATURE_PRIVATE_LOOPS] = {.service_bytes = sizeof(struct private_loops),
                               .service_init = private_loops_init,
                               .service_release = private_loops_release},
    [FEATURE_FOLDERS] = {.service_bytes = sizeof(struct folders), .service_release = folders_release},
    [FEATURE_ROUTER] = {.service_bytes = sizeof(struct router),
                        .service_init = router_init,
                        .service_complete = router_complete},
    [FEATURE_MAP] = {.service_bytes = sizeof(struct map), .service_init = map_init, .service_complete = map_complete},
    [FEATURE_CONSOLE] = {.service_bytes = sizeof(struct console)},
    [FEATURE_COMPAT] = {.service_bytes = sizeof(struct old_service),
                        .service_bind = old_service_bind,
                        .service_complete = old_service_complete},
    [FEATURE_API_ERRORS] = {.worker_bytes = sizeof(struct api_errors)},
    [FEATURE_LAST_LINES] = {.service_bytes = sizeof(struct service_lines),
                            .service_inherit = last_lines_inherit,
                            .service_release = last_lines_release},
};
